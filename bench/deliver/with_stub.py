"""The product without HTTP: `python -m bench.deliver.with_stub run worker`; every request is answered well at once."""

from tidings import processes
from tidings.cli.main import main
from tidings.courier import Guard, Request, Result

_ANSWER = Result(200, None, b"ok\n", None, 1)


class StubCourier:
    """As much of a courier as a worker needs that never waits."""

    def __init__(self, guard: Guard, *, connections: int, per_host: int, excerpt_size: int = 0) -> None:
        pass

    async def send(self, request: Request) -> Result:
        return _ANSWER

    async def close(self) -> None:
        pass


if __name__ == "__main__":
    processes.Courier = StubCourier  # type: ignore[assignment, attr-defined]  # in the place of the product's own
    main()
