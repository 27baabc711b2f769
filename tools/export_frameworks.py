#!/usr/bin/env python3
"""Exports networks of PyTorch and Keras to ONNX, as users do, for checks of the import.

    tools/export_frameworks.py torch --out DIR     # TorchScript and dynamo exporters
    tools/export_frameworks.py keras --out DIR     # tf2onnx

Each framework needs its own Python environment: requirements-export-torch.txt and
requirements-export-keras.txt. Weights are random, from a fixed seed. tools/compare_exports.py compares
the results of what comes out with ONNX Runtime's.

--small makes networks of the same kinds with few layers, for tests/import/data: their weights are left
out, and are filled in by a rule that the tests know, too (see exported_model.py); beside each lie an input and
ONNX Runtime's output.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from exported_model import finish

# ---- PyTorch ------------------------------------------------------------------------------------


def torch_networks(small):
    """Name, module, extents of the input."""
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
    from torchvision.models.mobilenetv3 import InvertedResidualConfig
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig

    class Upward(nn.Module):
        """U-Net: one level goes up by a transposed convolution, the next by interpolation."""

        def __init__(self, width, classes=5):
            super().__init__()

            def double(inputs, outputs):
                return nn.Sequential(
                    nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.GELU(),
                    nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                    nn.LeakyReLU(0.1),
                )

            self.down1, self.down2 = double(3, width), double(width, 2 * width)
            self.bottom = double(2 * width, 4 * width)
            self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
            self.up2 = double(4 * width, 2 * width)
            self.up1 = double(3 * width, width)
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x):
            first = self.down1(x)
            second = self.down2(functional.max_pool2d(first, 2))
            x = self.bottom(functional.avg_pool2d(second, 2))
            x = self.up2(torch.cat([self.up(x), second], dim=1))
            x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = self.up1(torch.cat([x, first], dim=1))
            return self.head(x).softmax(dim=1)

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x):
            batch, tokens, width = x.shape
            q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v)
            return self.out(y.transpose(1, 2).reshape(batch, tokens, width))

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention(width, heads)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        """A DeiT."""

        def __init__(self, extent, patch, width, heads, depth, classes):
            super().__init__()
            self.embed = nn.Conv2d(3, width, patch, stride=patch)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.position = nn.Parameter(torch.zeros(1, (extent // patch) ** 2 + 1, width))
            self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, classes)

        def forward(self, x):
            x = self.embed(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
            return self.head(self.norm(self.blocks(x))[:, 0])

    def unit(inputs, outputs, kernel=1, stride=1):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs), nn.SiLU(),
        )

    class Stage(nn.Module):
        """The C2f of YOLOv8."""

        def __init__(self, inputs, outputs):
            super().__init__()
            half = outputs // 2
            self.enter = unit(inputs, outputs)
            self.inner = nn.Sequential(unit(half, half, 3), unit(half, half, 3))
            self.leave = unit(half * 3, outputs)

        def forward(self, x):
            first, second = self.enter(x).chunk(2, 1)
            return self.leave(torch.cat([first, second, second + self.inner(second)], 1))

    class Detector(nn.Module):
        """A YOLOv8 without the last step: boxes and scores of every cell."""

        def __init__(self, width, classes=8, bins=8):
            super().__init__()
            self.classes, self.bins = classes, bins
            self.stem = nn.Sequential(unit(3, width, 3, 2), unit(width, 2 * width, 3, 2))
            self.stage1 = nn.Sequential(Stage(2 * width, 2 * width), unit(2 * width, 4 * width, 3, 2))
            self.stage2 = nn.Sequential(Stage(4 * width, 4 * width), unit(4 * width, 4 * width, 3, 2))
            self.pool = nn.MaxPool2d(5, 1, 2)
            self.spread = unit(16 * width, 4 * width)
            self.merge = Stage(8 * width, 4 * width)
            outputs = 4 * bins + classes
            self.heads = nn.ModuleList(nn.Conv2d(4 * width, outputs, 1) for _ in range(2))

        def forward(self, x):
            fine = self.stage1(self.stem(x))
            coarse = self.stage2(fine)
            once = self.pool(coarse)
            twice = self.pool(once)
            coarse = self.spread(torch.cat([coarse, once, twice, self.pool(twice)], 1))
            up = functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
            fine = self.merge(torch.cat([up, fine], 1))
            maps = [head(x) for head, x in zip(self.heads, (fine, coarse))]
            rows = torch.cat([m.flatten(2) for m in maps], 2)
            boxes, scores = rows.split((4 * self.bins, self.classes), 1)
            batch, _, cells = boxes.shape
            bins = torch.arange(self.bins, dtype=torch.float32)
            sides = boxes.view(batch, 4, self.bins, cells).transpose(2, 1).softmax(1)
            sides = (sides * bins.view(1, -1, 1, 1)).sum(1)
            centers, strides = self.grid(maps)
            low, high = centers - sides[:, :2], centers + sides[:, 2:]
            boxes = torch.cat([(low + high) / 2, high - low], 1) * strides
            return torch.cat([boxes, scores.sigmoid()], 1)

        @staticmethod
        def grid(maps):
            centers, strides = [], []
            for level, m in enumerate(maps):
                height, width = m.shape[2:]
                y = torch.arange(height, dtype=torch.float32) + 0.5
                x = torch.arange(width, dtype=torch.float32) + 0.5
                y, x = torch.meshgrid(y, x, indexing="ij")
                centers.append(torch.stack([x.flatten(), y.flatten()]))
                strides.append(torch.full((1, height * width), 8.0 * 2**level))
            return torch.cat(centers, 1)[None], torch.cat(strides, 1)

    class Segmentation(nn.Module):
        """Of a model's dictionary only the result."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)["out"]

    models = torchvision.models
    if not small:
        return [
            ("resnet18", models.resnet18(), (1, 3, 224, 224)),
            ("mobilenet_v3_small", models.mobilenet_v3_small(), (1, 3, 224, 224)),
            ("shufflenet_v2", models.shufflenet_v2_x1_0(), (1, 3, 224, 224)),
            ("efficientnet_b0", models.efficientnet_b0(), (1, 3, 224, 224)),
            ("vit", models.VisionTransformer(224, 32, 12, 3, 192, 768), (1, 3, 224, 224)),
            ("deit", Transformer(224, 16, 192, 3, 12, 1000), (1, 3, 224, 224)),
            ("unet", Upward(32), (1, 3, 128, 128)),
            ("deeplab_v3", Segmentation(models.segmentation.deeplabv3_mobilenet_v3_large(
                weights_backbone=None)), (1, 3, 224, 224)),
            ("yolo", Detector(16), (1, 3, 256, 256)),
        ]

    def residual(inputs, kernel, expanded, outputs, gate, activation, stride):
        return InvertedResidualConfig(
            inputs, kernel, expanded, outputs, gate, activation, stride, 1, 1.0
        )

    return [
        ("resnet", models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], 10), (1, 3, 48, 48)),
        ("mobilenet_v3", models.MobileNetV3([
            residual(16, 3, 16, 16, True, "RE", 2), residual(16, 3, 48, 24, False, "RE", 2),
            residual(24, 5, 64, 24, True, "HS", 1)], 64, 10), (1, 3, 48, 48)),
        ("shufflenet_v2", models.ShuffleNetV2([2, 2, 2], [16, 32, 48, 64, 96], 10), (1, 3, 64, 64)),
        ("efficientnet", EfficientNet([
            MBConvConfig(1, 3, 1, 16, 16, 1), MBConvConfig(4, 5, 2, 16, 24, 2)], 0.2,
            num_classes=10, last_channel=64), (1, 3, 48, 48)),
        ("vit", models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), (1, 3, 32, 32)),
        ("deit", Transformer(32, 8, 48, 3, 2, 10), (1, 3, 32, 32)),
        ("unet", Upward(16), (1, 3, 32, 32)),
        ("yolo", Detector(8), (1, 3, 64, 64)),
    ]


def export_torch(out, small, only):
    import torch
    from torch import nn

    torch.manual_seed(0)
    for name, module, extents in torch_networks(small):
        if only and name not in only:
            continue
        module = module.eval()
        with torch.no_grad():
            for part in module.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.running_mean.normal_(0, 0.1)
                    part.running_var.uniform_(0.5, 1.5)
                    part.weight.uniform_(0.5, 1.5)
                    part.bias.normal_(0, 0.1)
            for label, parameter in module.named_parameters():
                if parameter.abs().max() == 0:
                    parameter.normal_(0, 0.02)
        x = torch.randn(extents)
        for exporter, dynamo in (("torchscript", False), ("dynamo", True)):
            path = out / f"torch_{name}_{exporter}.onnx"
            if not dynamo:
                options = {"dynamic_axes": {"x": {0: "batch"}}}
            elif name in DYNAMIC:
                options = {"dynamic_shapes": ({0: torch.export.Dim("batch", min=1, max=64)},)}
            else:
                options = {}
            try:
                torch.onnx.export(module, (x,), path, dynamo=dynamo, input_names=["x"],
                                  output_names=["y"], external_data=False, **options)
                finish(path, small, f"pytorch {torch.__version__} {exporter}")
            except Exception as error:  # an exporter that gives up on a network is worth a line
                print(f"{path.name}: NOT EXPORTED: {str(error).strip().splitlines()[:1]}", flush=True)


# Networks that the dynamo exporter gets a symbolic batch for.
DYNAMIC = ("resnet18", "deit", "unet", "resnet")


# ---- Keras --------------------------------------------------------------------------------------


def keras_networks(small):
    import keras
    from keras import applications, layers
    from keras.src.applications import densenet, resnet

    # The exact one is written with an operator, Erfc, that ONNX does not have.
    def gelu(x):
        return keras.activations.gelu(x, approximate=True)

    def transformer(extent, patch, width, heads, depth, classes):
        x = inputs = layers.Input((extent, extent, 3))
        x = layers.Conv2D(width, patch, strides=patch)(x)
        tokens = (extent // patch) ** 2
        x = layers.Reshape((tokens, width))(x)
        for _ in range(depth):
            y = layers.LayerNormalization(epsilon=1e-6)(x)
            x = layers.Add()([x, layers.MultiHeadAttention(heads, width // heads)(y, y)])
            y = layers.LayerNormalization(epsilon=1e-6)(x)
            y = layers.Dense(4 * width, activation=gelu)(y)
            x = layers.Add()([x, layers.Dense(width)(y)])
        x = layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(x))
        return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))

    def unet(extent, width):
        x = inputs = layers.Input((extent, extent, 3))
        skips = []
        for level in range(2):
            x = layers.Conv2D(width << level, 3, padding="same", activation="relu")(x)
            x = layers.BatchNormalization()(x)
            skips.append(x)
            x = layers.MaxPooling2D(2)(x)
        x = layers.Conv2D(width * 4, 3, padding="same", activation="swish")(x)
        x = layers.Conv2DTranspose(width * 2, 3, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skips[1]])
        x = layers.UpSampling2D(2, interpolation="bilinear")(x)
        x = layers.Concatenate()([x, skips[0]])
        return keras.Model(inputs, layers.Conv2D(4, 1, activation="sigmoid")(x))

    plain = {"weights": None}
    if not small:
        return [
            ("mobilenet_v2", applications.MobileNetV2(**plain), 224),
            ("mobilenet_v3", applications.MobileNetV3Small(**plain), 224),
            ("resnet50", applications.ResNet50(**plain), 224),
            ("efficientnet_b0", applications.EfficientNetB0(**plain), 224),
            ("densenet121", applications.DenseNet121(**plain), 224),
            ("transformer", transformer(224, 16, 192, 3, 4, 1000), 224),
            ("unet", unet(128, 32), 128),
        ]
    narrow = {"weights": None, "classes": 10}
    return [
        ("mobilenet_v2", applications.MobileNetV2((64, 64, 3), alpha=0.35, **narrow), 64),
        ("mobilenet_v3", applications.MobileNetV3Small(
            (64, 64, 3), alpha=0.25, minimalistic=False, **narrow), 64),
        ("densenet", densenet.DenseNet(
            [2, 2, 2, 2], input_shape=(48, 48, 3), **narrow), 48),
        ("resnet", resnet.ResNet(
            lambda x: resnet.stack_residual_blocks_v1(x, 16, 2, stride1=1, name="c2"),
            False, True, input_shape=(48, 48, 3), **narrow), 48),
        ("transformer", transformer(32, 8, 32, 2, 2, 10), 32),
        ("unet", unet(32, 8), 32),
    ]


def export_keras(out, small, only):
    import keras
    import tensorflow as tf
    import tf2onnx

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    for name, model, extent in keras_networks(small):
        if only and name not in only:
            continue
        for layer in model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.set_weights([
                    rng.uniform(0.5, 1.5, w.shape) if "gamma" in v.name or "variance" in v.name
                    else rng.normal(0, 0.1, w.shape)
                    for v, w in zip(layer.weights, layer.get_weights())
                ])
        call = tf.function(lambda x, model=model: model(x, training=False))
        for opset in (13, 18):
            path = out / f"keras_{name}_{opset}.onnx"
            signature = [tf.TensorSpec((None, extent, extent, 3), tf.float32, name="x")]
            try:
                tf2onnx.convert.from_function(
                    call, input_signature=signature, opset=opset, output_path=str(path))
                versions = f"tf2onnx {tf2onnx.__version__} keras {keras.__version__}"
                finish(path, small, f"{versions} tensorflow {tf.__version__}")
            except Exception as error:
                print(f"{path.name}: NOT EXPORTED: {str(error).strip().splitlines()[:1]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=("torch", "keras"))
    parser.add_argument("--out", required=True, type=Path, help="folder for the models")
    parser.add_argument("--small", action="store_true", help="networks for tests/import/data")
    parser.add_argument("--only", nargs="*", help="names of networks")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    export = {"torch": export_torch, "keras": export_keras}[arguments.framework]
    export(arguments.out, arguments.small, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
