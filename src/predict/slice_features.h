// The features of slices on this engine's lanes: every one with its unit, and what of the time it
// explains.
//
// Arguments are what the operator, the part and the caller's choices say (threads, what runs
// beside it). Kernel features are what the lane says that it will do, what follows from it on the
// lane's cores, and how memory is laid out.
#pragma once

#include <functional>
#include <vector>

#include "predict/frame.h"
#include "predict/slice_measures.h"

namespace tandem::predict {

struct SliceFeature {
  Feature feature;
  double (*value)(const SliceMeasures&);
};

// What other lanes do meanwhile: nothing else depends on SliceCase::load.
inline constexpr const char* kLoadFeature = "load";

// In the order of columns.
const std::vector<SliceFeature>& slice_features();

// The columns that models take: all of them, or the arguments alone.
using FeatureFilter = std::function<bool(const Feature&)>;
bool is_argument(const Feature& feature);

// An empty frame of all features; and one row for it.
Frame slice_frame();
void append_slice_row(const SliceCase& slice, std::vector<double>* row);

}  // namespace tandem::predict
