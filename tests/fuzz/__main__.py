"""Fuzz what clew reads: `python -m fuzz --seconds 60 [--seed 1] [--only prov]`.

Each target gets its share of the time. The seed is printed first, so that a failure can be had
again; the last line counts inputs and failures, and the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys

from fuzz.targets import names, target


def main() -> int:
    """Run all targets, or some."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz what clew reads.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, for all together")
    parser.add_argument("--seed", type=int, help="where to begin (default: any)")
    parser.add_argument("--only", choices=names(), action="append", help="only these targets")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    chosen = options.only or names()
    inputs = failures = 0
    for name in chosen:
        try:
            tried = target(name)(options.seconds / len(chosen), seed)
        except AssertionError as error:
            failures += 1
            print(f"{name}: {error}", flush=True)
        else:
            inputs += tried
            print(f"{name}: {tried} inputs", flush=True)
    print(f"{inputs} inputs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
