"""`embed`: what a model, or a pretrained encoder, makes of every item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from askance import embedding
from askance._checks import check_whole
from askance.embedding import Embedding, concatenated
from askance.embedding.committee import Committee, CommitteeEvaluation
from askance.embedding.device import usable
from askance.errors import InputError
from askance.selection.tables import as_model_takes
from askance.selection.trainer import is_trainer, reader_of

if TYPE_CHECKING:
    from askance.encoders import Encoder

_BATCH = 256


def embed(
    model: nn.Module | Committee | str | Encoder,
    data: Any,
    *,
    head: str | None = None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
) -> Embedding:
    """What `model` says of every point of `data`: head outputs (logits) and head inputs (features).

    An encoder has no head, so it gives features (N, D) alone, as they are, not standardised. They are
    kept in the user's cache, so that an item is encoded once (`askance.encoders`).

    Args:
        model: any `nn.Module` with a linear head; it comes back as it was. Or an encoder, or its name.
            Of a committee, there are its members' logits, and no features.
        data: an array, a frame, a mapping of arrays, a Dataset or a DataLoader of x or (x, ignored).
            For an encoder, texts, or images as paths, bytes, Pillow images or uint8 arrays.
        head: the name of the last linear layer; found and verified on the first batch when None.
        batch_size: rows of a batch (a DataLoader brings its own); 256, or the encoder's own, when None.
        device: where to run; the model's own device, or CUDA where there is one, when None.

    Example:
        >>> import askance, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> emb = askance.embed(model, torch.randn(10, 4))
        >>> tuple(emb.logits.shape), tuple(emb.features.shape)
        ((10, 3), (10, 8))
    """
    check_whole("batch_size", batch_size, 1, or_none=True)
    if is_trainer(model):
        trainer: Any = model
        model, data = trainer.model, reader_of(trainer, data)
    data = as_model_takes(model, data, "data")
    if isinstance(model, Committee):
        if head is not None:
            raise InputError("head= names a layer of one model, and a committee has several models")
        with CommitteeEvaluation(model, device) as evaluation:
            return concatenated(list(evaluation.blocks(data, batch_size or _BATCH)))
    if not isinstance(model, nn.Module):
        # Imported here, since reading images takes libraries that nothing else needs.
        from askance.encoders import Encoder, get
        from askance.selection.encoded import features_of

        if isinstance(model, (str, Encoder)):
            if head is not None:
                raise InputError("an encoder has no head: its features come without logits")
            place = None if device is None else usable(device)
            features_ND = features_of(get(model), data, "data", place, batch_size)
            return Embedding(features=torch.from_numpy(features_ND))
    return embedding.embed(model, data, head=head, batch_size=batch_size or _BATCH, device=device)
