"""What a data directory knows about its server, in `server.json`: cluster, programs and port."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from tidings.db.embedded.durable import write_durably
from tidings.errors import EmbeddedServerFailed

NAME = "server.json"


@dataclass(frozen=True)
class Record:
    cluster: str  # relative while inside the data directory, so that the directory can be moved
    binaries: str
    major: int
    port: int | None = None

    @classmethod
    def read(cls, data_dir: Path) -> Self | None:
        try:
            return cls(**json.loads((data_dir / NAME).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise EmbeddedServerFailed(
                f"{data_dir / NAME} can't be understood: {error}",
                f"Put it back from a backup; if there is a folder {data_dir / 'cluster'}, "
                "you may delete the file: it is written again.",
            ) from error

    def write(self, data_dir: Path) -> None:
        write_durably(data_dir / NAME, json.dumps(asdict(self), indent=2) + "\n")

    def at_port(self, port: int) -> Self:
        return replace(self, port=port)

    def cluster_in(self, data_dir: Path) -> Path:
        return data_dir / self.cluster
