"""Encoders from folders of Hugging Face's form: tiny networks with random weights, no torchvision."""

import sys

import numpy as np
import pytest
import torch

from askance import encoders
from askance.errors import DataError, InputError

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "dog", "sat"]
IMAGES = [
    np.random.default_rng(n).integers(0, 256, size=(30 + n, 40, 3), dtype=np.uint8)
    for n in range(3)
]


@pytest.fixture(autouse=True)
def no_torchvision(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)


def saved_texts(folder):
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=12,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def saved_images(folder, kind):
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28}
    if kind == "dinov2":
        model = transformers.Dinov2Model(transformers.Dinov2Config(patch_size=14, **small))
    elif kind == "vit":
        config = transformers.ViTConfig(patch_size=14, intermediate_size=8, **small)
        model = transformers.ViTModel(config, add_pooling_layer=False)
    else:
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
        model = transformers.ResNetModel(config)
    model.save_pretrained(folder)
    processor = transformers.ViTImageProcessor(size={"height": 28, "width": 28})
    processor.save_pretrained(folder)
    return folder


def test_a_text_of_full_length_is_not_cut(tmp_path):
    encoder = encoders.get(f"hf:{saved_texts(tmp_path)}")
    full, longer = " ".join(["a"] * 10), " ".join(["a"] * 11)  # of 12 places, two are marks
    assert encoders.encode(encoder, [full]).cut == 0
    assert encoders.encode(encoder, [full, longer]).cut == 1


def test_texts_are_the_mean_over_their_tokens(tmp_path):
    folder = saved_texts(tmp_path)
    encoder = encoders.get(f"hf:{folder}")
    texts = ["a cat", "dog", "a cat sat a dog sat a cat sat a dog sat a cat"]
    encoded = encoders.encode(encoder, texts)
    assert (encoder.kind, encoder.dimension, encoded.cut) == ("text", 16, 1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    for row, text in enumerate(texts):
        tokens = tokenizer(text, truncation=True, max_length=12, return_tensors="pt")
        with torch.no_grad():
            expected = model(**tokens).last_hidden_state[0].mean(dim=0)
        np.testing.assert_allclose(encoded.features[row], expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["dinov2", "vit", "resnet"])
def test_images_by_the_folders_own_preprocessing(tmp_path, kind):
    folder = saved_images(tmp_path, kind)
    encoder = encoders.get(f"hf:{folder}")
    encoded = encoders.encode(encoder, IMAGES)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    pixels = processor(images=IMAGES, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        hidden = model(pixel_values=pixels).last_hidden_state
    expected = hidden.mean(dim=(2, 3)) if kind == "resnet" else hidden[:, 0]
    np.testing.assert_allclose(encoded.features, expected, atol=1e-5)


def test_another_weight_is_another_digest(tmp_path):
    folder = saved_texts(tmp_path)
    before = encoders.get(f"hf:{folder}").digest
    assert encoders.get(f"hf:{folder}").digest == before
    torch.manual_seed(1)
    config = transformers.AutoConfig.from_pretrained(folder)
    transformers.BertModel(config).save_pretrained(folder)
    assert encoders.get(f"hf:{folder}").digest != before


def test_a_folder_without_safetensors_is_refused(tmp_path):
    folder = saved_texts(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"weights as \*\.safetensors"):
        encoders.get(f"hf:{folder}")


def test_a_folder_of_the_other_kind(tmp_path):
    with pytest.raises(DataError, match="no image encoder"):
        encoders.get(f"hf:{saved_texts(tmp_path)}", "image")


def test_a_folder_of_both_kinds_must_be_told_apart(tmp_path):
    folder = saved_texts(tmp_path)
    transformers.ViTImageProcessor(size={"height": 28, "width": 28}).save_pretrained(folder)
    with pytest.raises(InputError, match="takes texts and images"):
        encoders.get(f"hf:{folder}")
    assert encoders.get(f"hf:{folder}", "text").kind == "text"


def test_a_name_that_cannot_be_fetched(monkeypatch):
    import huggingface_hub

    def refused(name, **options):
        raise OSError("no route to the hub\nand more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refused)
    with pytest.raises(
        DataError, match=r"\(no route to the hub\).*hf download some/model"
    ) as error:
        encoders.get("hf:some/model")
    assert "\n" not in str(error.value)
