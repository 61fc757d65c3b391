"""Splits and partitioned steps in the picture of a plan."""

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import Job, PartitionedStep, Split, Step
from triolet.actors.plan.mermaid import mermaid_lines
from triolet.storage.model.status import BatchStatus

from .definitions import work

SPLIT = Split("p", [[Step("l", work), Step("m", work)], Step("r[1]", work)])
JOB = Job("j", [Step("a", work), SPLIT, PartitionedStep("q", work, work, 10)])
PICTURE = """flowchart TD
  start(( )) --> n0
  n0["a"]
  subgraph n1["p"]
    n4["l"]
    n5["m"]
    n4 --> n5
    n6["r#91;1#93;"]
  end
  n1 --> n2
  n2{{"p.join"}}
  n3[["q: 10 x q.worker"]]
  n0 -->|"FAILED"| fail
  n0 -->|"*"| n1
  n2 -->|"FAILED"| fail
  n2 -->|"*"| n3
  n3 -->|"FAILED"| fail
  n3 -->|"*"| complete
  complete(["COMPLETE"])
  fail(["FAIL"])
""".splitlines()


def test_branches_stand_in_a_frame_that_leads_to_the_join() -> None:
    assert list(mermaid_lines(compile_job(JOB).plan)) == PICTURE


def test_steps_in_branches_have_their_statuses() -> None:
    statuses = {"l": BatchStatus.COMPLETED, "m": BatchStatus.FAILED}
    lines = list(mermaid_lines(compile_job(JOB).plan, statuses))
    assert lines[len(PICTURE) :] == [
        "  classDef completed fill:#d3f0d3",
        "  class n4 completed",
        "  classDef failed fill:#f6c9c9",
        "  class n5 failed",
    ]
