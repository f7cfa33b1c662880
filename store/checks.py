"""Whether the store is sound: the file, the references in it, and that the books add up."""

from __future__ import annotations

from sqlalchemy import Connection, and_, case, func, select

from store.schema import LIVE, PAID, UNKNOWN, answers, charges, runs, scopes


def problems(connection: Connection) -> list[str]:
    """One line per thing that is wrong; empty when all is well."""
    return [*_file_problems(connection), *_balance_problems(connection), *_answer_problems(connection)]


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    said = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
    broken = [f"file: {line}" for line in said if line != "ok"]
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return broken + [f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:20]]


def _balance_problems(connection: Connection) -> list[str]:
    """Spent must be what was paid plus what is unknown, and reserved what is under way."""
    spent = case((charges.c.state == PAID, charges.c.cost), (charges.c.state == UNKNOWN, charges.c.reserved), else_=0)
    reserved = case((charges.c.state.in_(LIVE), charges.c.reserved), else_=0)
    query = (
        select(
            scopes.c.scope,
            scopes.c.spent,
            scopes.c.reserved,
            func.coalesce(func.sum(spent), 0).label("charged"),
            func.coalesce(func.sum(reserved), 0).label("claimed"),
        )
        .outerjoin(runs, runs.c.scope == scopes.c.id)
        .outerjoin(charges, charges.c.run == runs.c.id)
        .group_by(scopes.c.id, scopes.c.scope, scopes.c.spent, scopes.c.reserved)
        .order_by(scopes.c.id)
    )
    found = []
    for row in connection.execute(query):
        if row.spent != row.charged:
            found.append(f"scope {row.scope}: {row.spent} micro-dollars spent, but {row.charged} charged")
        if row.reserved != row.claimed:
            found.append(f"scope {row.scope}: {row.reserved} micro-dollars reserved, but {row.claimed} claimed")
    return found


def _answer_problems(connection: Connection) -> list[str]:
    paid = and_(charges.c.key == answers.c.key, charges.c.state == PAID)
    unpaid = select(answers.c.key).outerjoin(charges, paid).where(charges.c.key.is_(None)).order_by(answers.c.id)
    unkept = (
        select(charges.c.key)
        .outerjoin(answers, answers.c.key == charges.c.key)
        .where(charges.c.state == PAID, answers.c.key.is_(None))
        .order_by(charges.c.key)
    )
    return [
        *(f"answer {key}: no charge was booked for it" for key in connection.execute(unpaid.limit(20)).scalars()),
        *(f"charge {key}: its answer is not kept" for key in connection.execute(unkept.limit(20)).scalars()),
    ]
