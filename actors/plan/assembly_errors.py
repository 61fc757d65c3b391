"""Why code cannot be bound to a plan; nothing was written when one of these is raised."""

from ...storage.model.errors import TrioletError, error


class AssemblyError(TrioletError):
    """The plan and the code that is bound to it do not belong together."""

    code = "assembly_invalid"


@error
class ManifestUnsupported(AssemblyError):
    """The manifest describes no flow that code could be bound to."""

    code = "manifest_unsupported"
    job: str
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return f"the manifest given for job {self.job!r} cannot be assembled: {self.reason}"


@error
class JobNameMismatch(AssemblyError):
    """The plan is one of another job."""

    code = "job_name_mismatch"
    job: str
    planned: str

    def __str__(self) -> str:
        return (
            f"the plan is one of job {self.planned!r}, not of {self.job!r}: give that "
            "name, or the other job's plan"
        )


@error
class WrongNodeKind(AssemblyError):
    """What is bound to a node is not for nodes of its kind."""

    code = "wrong_node_kind"
    node: str
    kind: str
    """What the node is, and takes."""
    given: str

    def __str__(self) -> str:
        return f"{self.node!r} is {self.kind}, but {self.given} is bound to it"


@error
class StepNameMismatch(AssemblyError):
    """The step that is bound to a node, or made for it, has another name."""

    code = "step_name_mismatch"
    node: str
    declared: str
    given: str

    def __str__(self) -> str:
        return (
            f"{self.node!r} has the step name {self.declared!r}, but the step bound to "
            f"it is called {self.given!r}: give it that name"
        )


@error
class DuplicateBinding(AssemblyError):
    """Two pieces of code are bound to one node."""

    code = "binding_duplicate"
    node: str

    def __str__(self) -> str:
        return f"{self.node!r} is bound twice: leave one of the bindings out"


@error
class MissingBinding(AssemblyError):
    """A node has no code; it is the first such one in the order of ids."""

    code = "binding_missing"
    node: str
    kind: str

    def __str__(self) -> str:
        return f"nothing is bound to {self.node!r}, which is {self.kind}"


@error
class ComponentMismatch(AssemblyError):
    """The code that is bound to a node is not what the plan declares."""

    code = "component_mismatch"
    node: str
    reason: str

    def __str__(self) -> str:
        return f"what is bound to {self.node!r} does not fit the plan: {self.reason}"


@error
class FactoryFailed(AssemblyError):
    """The function that makes a step for each launch raised."""

    code = "factory_failed"
    node: str
    exception: str

    def __str__(self) -> str:
        return f"the factory of {self.node!r} raised {self.exception}"
