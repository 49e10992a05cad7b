"""Requests that nobody would think of, made from the OpenAPI document: no 5xx, every answer as it is described."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.api.conftest import Served
from tests.support.processes import INHERITED
from tidings.model.key import Scope

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_whatever_is_asked_is_answered_as_the_document_says(served: Served, tmp_path: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).parent / "st"), "run", f"{served.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {served.keys[Scope.ADMIN]}", "--checks", CHECKS),
        *("--phases", "examples,fuzzing", "--max-examples", "4", "--seed", "1", "--no-shrink"),
        *("--continue-on-failure", "--request-timeout", "20", "--suppress-health-check", "all", "--warnings", "off"),
        cwd=tmp_path,
        env={name: os.environ[name] for name in INHERITED if name in os.environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(program.communicate(), 280)
    assert program.returncode == 0, said.decode()[-8000:]
