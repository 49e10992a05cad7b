"""Makes inputs that nobody would think of out of ones that are known, from a seed: the same seed, the same inputs."""

import random
from collections.abc import Iterator, Sequence


def mutated(corpus: Sequence[bytes], words: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """So many inputs: bytes flipped, pieces repeated, dropped, swapped, spliced, words put in, several at once."""
    chance = random.Random(seed)
    yield from corpus
    for _ in range(count):
        data = bytearray(chance.choice(corpus))
        for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
            _change(chance, data, corpus, words)
        yield bytes(data)


def mutated_texts(corpus: Sequence[str], words: Sequence[str], count: int, seed: int = 1) -> Iterator[str]:
    """The same for text; what is no UTF-8 becomes halves of characters."""
    made = mutated([one.encode() for one in corpus], [one.encode() for one in words], count, seed)
    return (one.decode("utf-8", "surrogateescape") for one in made)


def _change(chance: random.Random, data: bytearray, corpus: Sequence[bytes], words: Sequence[bytes]) -> None:
    place = chance.randint(0, len(data))
    length = chance.choice([1, 1, 2, 4, 9, 40])
    piece = bytes(data[place : place + length])
    match chance.randrange(7):
        case 0:
            data[place:place] = chance.choice(words)
        case 1:
            data[place : place + length] = chance.choice(words)
        case 2 if data:
            data[min(place, len(data) - 1)] = chance.randrange(256)
        case 3:
            del data[place : place + length]
        case 4:
            data[place:place] = piece * chance.choice([1, 2, 30])
        case 5:
            other = chance.choice(corpus)
            cut = chance.randint(0, len(other))
            data[place:] = other[cut:]
        case _:
            data[place : place + length] = piece[::-1]
