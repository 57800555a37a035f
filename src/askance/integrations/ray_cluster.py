"""A Ray cluster to work on: the one at an address, the one this process is in, or one started here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from askance.errors import AskanceError, ExtraError, InputError


def ray_module() -> Any:
    """Ray, which is an extra; called early, so that its absence is said before anything is read."""
    try:
        import ray
    except ImportError as error:
        raise ExtraError.of("ray", "cluster") from error
    return ray


@contextmanager
def joined(address: str | None = None) -> Iterator[Any]:
    """Ray, connected. What was connected before stays so; what is connected here is left at the end.

    Args:
        address: a cluster's, "auto" for the one this machine is part of; when None, the one this
            process has joined already, or one of this machine's cores alone.
    """
    ray = ray_module()
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", here) and not address.startswith("ray://"):
            raise InputError(
                f"this process is part of the Ray cluster at {here}, not of the one at {address}; "
                f"call ray.shutdown() first"
            )
        yield ray
        return
    try:
        ray.init(
            address=address,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise AskanceError(
            f"no Ray cluster could be joined {where}: {str(error).partition(chr(10))[0]}; start one "
            f"with `ray start --head`, and give --address the address it says"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def places(ray: Any, cpus: float, gpus: float) -> int:
    """How many workers of this size the cluster has room for; one, where it may yet grow to it."""
    has = ray.cluster_resources()
    room = has.get("GPU", 0.0) / gpus if gpus else has.get("CPU", 0.0) / cpus
    return max(1, int(room + 1e-6))


def raised(error: BaseException) -> BaseException:
    """What a worker raised, as it raised it."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error
