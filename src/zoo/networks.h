// One function per family of networks; each adds a whole network, from input to outputs.
#pragma once

#include <cstdint>

#include "zoo/graph_builder.h"

namespace tandem::zoo {

// torchvision's.
void vgg16(GraphBuilder& g);
void resnet18(GraphBuilder& g);
void resnet34(GraphBuilder& g);
void resnet50(GraphBuilder& g);
void inception_v3(GraphBuilder& g);
void mobilenet_v2(GraphBuilder& g);
void squeezenet1_1(GraphBuilder& g);
void vit_b_16(GraphBuilder& g);
void vit_b_32(GraphBuilder& g);

void efficientnet_b0(GraphBuilder& g);
void shufflenet_v2_x1_0(GraphBuilder& g);

// timm's.
void deit_tiny(GraphBuilder& g);
void inception_v4(GraphBuilder& g);
void inception_resnet_v2(GraphBuilder& g);
void hrnet_w18(GraphBuilder& g);

// Of their authors' own.
void peleenet(GraphBuilder& g);
void unet(GraphBuilder& g);
void yolov5n(GraphBuilder& g);
void bert_base(GraphBuilder& g);

// Tiny networks for tests: a few kilobytes of weights, and each kind of operator in its context.
void tiny_linear(GraphBuilder& g);
void tiny_conv(GraphBuilder& g);
void tiny_residual(GraphBuilder& g);
void tiny_bottleneck(GraphBuilder& g);
void tiny_concat(GraphBuilder& g);
void tiny_inception(GraphBuilder& g);
void tiny_mobilenet(GraphBuilder& g);
void tiny_vit(GraphBuilder& g);
void tiny_deit(GraphBuilder& g);
void tiny_efficientnet(GraphBuilder& g);
void tiny_shufflenet(GraphBuilder& g);
void tiny_hrnet(GraphBuilder& g);
void tiny_unet(GraphBuilder& g);
void tiny_yolo(GraphBuilder& g);
void tiny_bert(GraphBuilder& g);

}  // namespace tandem::zoo
