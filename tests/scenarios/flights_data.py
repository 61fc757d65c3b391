"""Invented flights, zipped in the shape of the real file."""

import zipfile
from pathlib import Path
from random import Random

from scenarios.flights.job import COLUMNS

ORIGINS = ("EWR", "JFK", "LGA")
DESTINATIONS = ("ATL", "BOS", "LAX", "ORD")


def put_flights(path: Path, records: int, seed: int = 1) -> Path:
    """Write *records* flights, some with NA where a value may be missing."""
    random = Random(seed)
    lines = [",".join(COLUMNS)]
    lines += [",".join(_flight(random, number)) for number in range(records)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flights.csv", "\n".join(lines) + "\n")
    return path


def _flight(random: Random, number: int) -> list[str]:
    cancelled = random.random() < 0.05
    values = dict.fromkeys(COLUMNS, "1")
    values |= {
        "year": "2013",
        "dep_time": "NA" if cancelled else str(random.randint(1, 2400)),
        "arr_delay": "NA" if cancelled else str(random.randint(-60, 200)),
        "carrier": random.choice(("UA", "AA", "B6")),
        "flight": str(number),
        "tailnum": "NA" if cancelled else f"N{number % 977}",
        "origin": random.choice(ORIGINS),
        "dest": random.choice(DESTINATIONS),
        "time_hour": "2013-01-01T10:00:00Z",
    }
    return [values[name] for name in COLUMNS]
