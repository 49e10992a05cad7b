"""A shop on FastAPI and SQLAlchemy: an order, the event about it and the mail that it needs are one transaction.

DATABASE_URL=postgresql+psycopg://app:secret@localhost/shop uvicorn shop:app
DATABASE_URL=mariadb+pymysql://app:secret@localhost/shop uvicorn shop:app
"""

import os
from decimal import Decimal

import tidings
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Numeric, String, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

engine = create_engine(os.environ["DATABASE_URL"])


class Table(DeclarativeBase):
    pass


class Order(Table):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(200))
    total: Mapped[Decimal] = mapped_column(Numeric(10, 2))
    paid: Mapped[bool] = mapped_column(default=False)


class NewOrder(BaseModel):
    email: str
    total: Decimal


Table.metadata.create_all(engine)
app = FastAPI()


@app.post("/orders", status_code=201)
def place(new: NewOrder) -> dict[str, int]:
    with Session(engine) as session, session.begin():
        order = Order(email=new.email, total=new.total)
        session.add(order)
        session.flush()  # now it has an id
        payload = {"order": order.id, "total": str(new.total)}
        event = tidings.publish(session, "order.placed", payload, external_id=f"order-{order.id}-placed")
        tidings.submit_task(session, "EMAIL_SEND", f"order-{order.id}", {"to": new.email, "order": order.id})
        return {"order": order.id, "event": event.id}


@app.post("/orders/{id}/payment")
def pay(id: int) -> dict[str, int]:
    with Session(engine) as session, session.begin():
        order = session.get(Order, id, with_for_update=True)
        if order is None:
            raise HTTPException(404)
        order.paid = True
        event = tidings.publish(session, "order.paid", {"order": id}, external_id=f"order-{id}-paid")
        if order.total > 1000:  # the bank declines: everything above is rolled back, and no event was ever there
            raise HTTPException(402, "declined")
        return {"order": id, "event": event.id}
