"""Reads a task's payload into what its handler takes: plain JSON, a dataclass, a msgspec Struct, a pydantic model."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from tidings.errors import HandlerInvalid, PayloadUnfit

PayloadReader = Callable[[str], Any]
_ANYTHING = (inspect.Parameter.empty, Any, object)


def payload_reader(biz_type: str, function: Callable[..., Any], parameter: inspect.Parameter) -> PayloadReader:
    """What turns the JSON text into the handler's first argument; PayloadUnfit if it does not fit."""
    kind = _kind_of(biz_type, function, parameter)
    read = _reader_of(biz_type, kind)

    def read_payload(text: str) -> Any:
        try:
            return read(text)
        except Exception as error:  # of msgspec, of pydantic, or of a check of the model's own
            wanted = f" {kind.__name__}" if isinstance(kind, type) and kind not in _ANYTHING else ""
            raise PayloadUnfit(f"The payload does not fit{wanted}: {error}") from error

    return read_payload


def _kind_of(biz_type: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    if parameter.annotation in _ANYTHING:
        return Any
    try:
        return typing.get_type_hints(function).get(parameter.name, Any)
    except Exception as error:  # whatever evaluating somebody's annotation comes to
        raise HandlerInvalid(
            f"The annotations of the handler of {biz_type} can't be read: {error}",
            "The type of its first argument must be known where the handler is defined.",
        ) from error


def _reader_of(biz_type: str, kind: Any) -> PayloadReader:
    # Known by what they can do, so that pydantic need not be there.
    if callable(validate := getattr(kind, "model_validate_json", None)):
        return typing.cast(PayloadReader, validate)
    if (validator := getattr(kind, "__pydantic_validator__", None)) is not None:
        return typing.cast(PayloadReader, validator.validate_json)
    try:
        return msgspec.json.Decoder(kind).decode
    except TypeError as error:
        raise HandlerInvalid(
            f"The handler of {biz_type} wants a payload of type {kind!r}, which JSON can't be read into: {error}",
            "Use a dataclass, a msgspec Struct, a pydantic model, or no annotation for plain JSON.",
        ) from error
