"""OWL-ViT through transformers, from the model to AP-Fixed, with the classes in chunks.

    python examples/owlvit.py
    python examples/owlvit.py --weights google/owlvit-base-patch32 \
        --annotations lvis_v1_minival.json --images coco --output owlvit.parquet

`post_process_object_detection` keeps one class per box and would hide rare classes behind frequent
ones. Here every pair of a box and a class is a detection.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import torch
from open_vocabulary_set import arguments, image_set, print_chain
from PIL import Image
from transformers import (
    CLIPTokenizer,
    OwlViTConfig,
    OwlViTForObjectDetection,
    OwlViTImageProcessor,
    OwlViTProcessor,
)

import lvdet

PER_CLASS, PER_IMAGE = 10_000, 300
#: Prompts that the text tower reads at a time, and classes whose scores are held at a time.
CHUNK = 40


def random_model() -> tuple[OwlViTForObjectDetection, OwlViTProcessor]:
    """A tiny OWL-ViT that spells its prompts, letter by letter."""
    letters = [*ascii_lowercase, *digits]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    end = vocabulary["<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=64)
    small: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    text = {"vocab_size": len(words), "max_position_embeddings": 64, "eos_token_id": end} | small
    text |= {"bos_token_id": end - 1, "pad_token_id": end}
    vision = {"image_size": 96, "patch_size": 16} | small
    torch.manual_seed(0)
    config = OwlViTConfig(text_config=text, vision_config=vision, projection_dim=32)
    side = {"height": 96, "width": 96}
    processor = OwlViTProcessor(OwlViTImageProcessor(size=side), tokenizer)
    return OwlViTForObjectDetection(config), processor


def embedded(model: Any, processor: Any, prompts: list[str]) -> torch.Tensor:
    """[classes, width] the prompts' embeddings, of norm 1."""
    found = []
    for begin in range(0, len(prompts), CHUNK):
        chunk = [f"a photo of a {prompt}" for prompt in prompts[begin : begin + CHUNK]]
        texts = processor(text=[chunk], truncation=True, return_tensors="pt").to(model.device)
        features = model.owlvit.get_text_features(**texts)
        features = getattr(features, "pooler_output", features)
        found.append(features / features.norm(dim=-1, keepdim=True))
    return torch.cat(found)


def main() -> None:
    """Writes what the budgets keep, and evaluates it."""
    parser = arguments(__doc__ or "", "google/owlvit-base-patch32")
    options = parser.parse_args()
    given = image_set(options.annotations, options.images)
    if options.weights is None:
        model, processor = random_model()
    else:
        model = OwlViTForObjectDetection.from_pretrained(options.weights)
        processor = OwlViTProcessor.from_pretrained(options.weights)
    model = model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    output = options.output or Path(tempfile.mkdtemp()) / "owlvit.parquet"
    boxes = 0
    with (
        torch.inference_mode(),
        lvdet.TopKWriter(
            output,
            dets_per_class=PER_CLASS,
            dets_per_image=PER_IMAGE,
            box_format="xyxy",
            category_ids=given.gt.categories.ids,
        ) as writer,
    ):
        prompts = embedded(model, processor, given.prompts)
        for image_id, path in given.paths.items():
            if image_id in writer:  # finished before a restart
                continue
            image = Image.open(path).convert("RGB")
            pixels = processor(images=image, return_tensors="pt")["pixel_values"].to(model.device)
            feature_map = model.image_embedder(pixels)[0]
            features = feature_map.flatten(1, 2)
            boxes = features.shape[1]
            center, size = model.box_predictor(features, feature_map)[0].split(2, dim=-1)
            scale = torch.tensor([image.width, image.height] * 2, device=model.device)
            corners = torch.cat([center - size / 2, center + size / 2], dim=-1) * scale
            rows, labels, scores = [], [], []
            for begin in range(0, len(prompts), CHUNK):
                chunk = prompts[None, begin : begin + CHUNK]
                chance = model.class_predictor(features, chunk)[0][0].sigmoid()
                label = torch.arange(begin, begin + chance.shape[1], device=model.device)
                label = label.expand_as(chance).flatten()
                keep = torch.from_numpy(writer.keeps(chance.flatten(), label)).to(model.device)
                row = keep.nonzero()[:, 0]
                rows.append(row // chance.shape[1])
                labels.append(label[row])
                scores.append(chance.flatten()[row])
            place = torch.cat(rows)
            writer.add(image_id, corners[place], torch.cat(scores), torch.cat(labels))
    classes = len(given.prompts)
    print_chain(
        [
            ("OWL-ViT per image", f"{boxes:,} boxes x {classes:,} classes, no minimum score"),
            ("results file", f"best {PER_CLASS:,} per class and best {PER_IMAGE} per image"),
            ("AP-Old", f"best {PER_IMAGE} per image"),
            ("AP-Fixed, AP-Pool", f"best {PER_CLASS:,} per class"),
        ]
    )
    print(lvdet.evaluate(given.annotations, output, iou="bbox"))


if __name__ == "__main__":
    main()
