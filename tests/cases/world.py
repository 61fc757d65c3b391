"""A store in a file, seen as its users see it: by launches, questions and SQL."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from attrs import define

from triolet.actors import (
    ExecutionDetail,
    Job,
    LaunchReport,
    RuntimeOptions,
    open_runtime,
)
from triolet.storage.model.parameters import ParameterValue


@define
class World:
    """One SQLite file; every launch opens it anew, like another process."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "store.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    @property
    def options(self) -> RuntimeOptions:
        return RuntimeOptions(inline=True, random=Random(1))

    async def launch(
        self,
        job: Job,
        parameters: Mapping[str, object] | None = None,
        *,
        anew: bool = False,
    ) -> LaunchReport:
        async with open_runtime(self.url, self.options) as runtime:
            return await runtime.launch(job, parameters, anew=anew)

    async def show(self, execution_id: int) -> ExecutionDetail:
        async with open_runtime(self.url, self.options) as runtime:
            return await runtime.show(execution_id)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the file behind the product's back."""
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(statement).fetchall()

    def rows(self) -> list[Any]:
        """Give the business rows, in the order in which they were written."""
        return [row[0] for row in self.query("SELECT x FROM rows ORDER BY rowid")]

    def statuses(self) -> list[tuple[str, str]]:
        """Node and status of every step row, in the order of their making."""
        return [
            (str(node), str(status))
            for node, status in self.query(
                "SELECT node, status FROM triolet_step ORDER BY id"
            )
        ]

    def count(self) -> dict[str, int]:
        """Count the rows of the product's tables that a refusal must not touch."""
        tables = ("instance", "execution", "step", "decision")
        return {
            table: self.query(f"SELECT count(*) FROM triolet_{table}")[0][0]
            for table in tables
        }

    def stored_parameters(self) -> list[dict[str, ParameterValue]]:
        """Give the parameters of every execution, as `show` would print them."""
        from triolet.storage.codec import decode_parameters

        texts = self.query("SELECT parameters FROM triolet_execution ORDER BY id")
        return [decode_parameters(text).values() for (text,) in texts]
