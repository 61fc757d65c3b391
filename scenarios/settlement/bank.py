"""A small invented bank: its files, and the truth to compare with, without Triolet.

Amounts are whole cents. Each account is in one currency, and what one account pays
another one receives; so in each currency all balances sum up to zero.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from attrs import frozen

CURRENCIES = ("EUR", "USD", "CHF")
HOUSE = {"EUR": 1, "USD": 2, "CHF": 3}
"""The bank's own account of each currency."""
GAINS, RESERVE = 4, 5
"""More accounts of the bank, in EUR: what the rates brought, and the other side."""
FIRST_CUSTOMER = 6
FREE_POSTINGS = 15
"""So many are free for a customer; each one beyond costs a fee."""
FEE = 35

DAY, RATES = "day.json", "rates.json"
ACCOUNTS, POSTINGS = "accounts.csv", "postings.csv"
BROKEN = "12O50"
"""What somebody typed instead of an opening balance, with a letter in it."""


@frozen
class Bank:
    """One day of it."""

    opening: Mapping[int, int]
    """The balance of each account in the morning."""
    currency: Mapping[int, str]
    """Of each account."""
    postings: Sequence[tuple[int, int]]
    """Account and amount; two neighbours are the two sides of one payment."""
    rates: Mapping[str, tuple[int, int]]
    """Yesterday's and today's, in EUR, times 10,000."""

    @property
    def fees(self) -> Mapping[int, int]:
        """What each account pays, and each account of the bank receives."""
        fees: dict[int, int] = defaultdict(int)
        for account, count in Counter(account for account, _ in self.postings).items():
            charge = max(0, count - FREE_POSTINGS) * FEE
            if account >= FIRST_CUSTOMER and charge:
                fees[account] -= charge
                fees[HOUSE[self.currency[account]]] += charge
        return fees

    @property
    def revaluation(self) -> Mapping[int, int]:
        """What today's rates add to the accounts for it."""
        gain = 0
        for currency, (before, now) in self.rates.items():
            position = sum(
                amount
                for account, amount in self.postings
                if self.currency[account] == currency and account >= FIRST_CUSTOMER
            )
            gain += position * (now - before) // 10_000
        return {GAINS: gain, RESERVE: -gain}

    @property
    def balances(self) -> Mapping[int, int]:
        """The balance of each account in the evening."""
        balances = dict(self.opening)
        for part in (self.postings, self.fees.items(), self.revaluation.items()):
            for account, amount in part:
                balances[account] += amount
        return balances


def make_bank(accounts: int = 300, payments: int = 2_000, seed: int = 1) -> Bank:
    """Invent a bank; the same seed gives the same one."""
    random = Random(seed)
    currency = {account: name for name, account in HOUSE.items()}
    currency |= {GAINS: "EUR", RESERVE: "EUR"}
    for account in range(FIRST_CUSTOMER, accounts + 1):
        currency[account] = random.choice(CURRENCIES)
    opening = dict.fromkeys(currency, 0)
    for account in range(FIRST_CUSTOMER, accounts + 1):
        opening[account] = random.randint(-50_000, 500_000)
        opening[HOUSE[currency[account]]] -= opening[account]
    postings: list[tuple[int, int]] = []
    for _ in range(payments):
        payer = random.randint(FIRST_CUSTOMER, accounts)
        house = HOUSE[currency[payer]]
        others = [house, *range(FIRST_CUSTOMER, accounts + 1)]
        payees = [
            one for one in others if currency[one] == currency[payer] and one != payer
        ]
        cents = random.randint(1, 90_000)
        postings += [(payer, -cents), (random.choice(payees), cents)]
    rates = {"USD": (8_600, 8_655), "CHF": (10_710, 10_688)}
    return Bank(opening, currency, postings, rates)


def put_files(bank: Bank, folder: Path, broken: int | None = None) -> None:
    """Write the files of the day; the opening balance of one account may be broken."""
    day = {"accounts": len(bank.opening), "postings": len(bank.postings)}
    (folder / DAY).write_text(json.dumps(day), encoding="utf-8")
    (folder / RATES).write_text(json.dumps(bank.rates), encoding="utf-8")
    accounts = [
        (account, BROKEN if account == broken else amount)
        for account, amount in bank.opening.items()
    ]
    _put(folder / ACCOUNTS, "account,opening", accounts)
    postings = [
        (account, bank.currency[account], cents) for account, cents in bank.postings
    ]
    _put(folder / POSTINGS, "account,currency,cents", postings)


def _put(path: Path, header: str, rows: Iterable[Sequence[int | str]]) -> None:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
