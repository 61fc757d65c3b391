"""What the store says of a job's definition, without the job's code."""

from ...storage.commands.upgrading import FindDefinition
from ...storage.model.errors import CorruptRecord
from ...storage.model.execution import JobExecution, JobInstance
from ..plan.manifest import read_manifest
from ..plan.plan import Plan
from .asking import ask


def stored_plan(
    url: str, instance: JobInstance, execution: JobExecution
) -> Plan | None:
    """Give the plan that an execution runs; None when this release cannot read it."""
    question = FindDefinition(instance.job, execution.revision)
    try:
        return read_manifest(ask(url, question).manifest)
    except CorruptRecord:
        return None
