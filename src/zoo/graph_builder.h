// Builds an ONNX graph operator by operator, with shapes tracked on the way.
//
// A network's builder cannot go on after a mistake, and should not have to check every call: the
// first error is kept, every later call returns an empty Value, and finish() reports the error.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/status.h"

namespace tandem::zoo {

using Shape = std::vector<int64_t>;

// A tensor of the graph under construction.
struct Value {
  std::string name;
  Shape shape;
  // Estimated mean square of the elements. A layer with weights divides by it, which keeps
  // activations of order one whatever combination of ReLU, Add, Concat and pooling lies before.
  float power = 1.0f;
  // The part of it that is due to terms without negative elements, which a ReLU lets through.
  float rectified = 0.0f;
  onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT;

  // Negative axes count from the end. 0 if there is no such axis.
  int64_t dim(int64_t axis) const;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

// Height and width. One number stands for both.
struct Hw {
  constexpr Hw(int64_t both) : h(both), w(both) {}  // NOLINT: implicit
  constexpr Hw(int64_t height, int64_t width) : h(height), w(width) {}

  int64_t h;
  int64_t w;
};

struct ConvOptions {
  int64_t out;
  Hw kernel = 1;
  Hw stride = 1;
  Hw pad = 0;
  int64_t groups = 1;
  bool bias = false;
};

struct PoolOptions {
  Hw kernel;
  Hw stride;
  Hw pad = 0;
  bool ceil = false;
  bool count_pad = true;  // average pooling only: padding counts as zeros
};

// Whether to fill in the weights. Without them the model cannot run, but its shapes, parameter
// count and cost are known, and building takes a millisecond.
enum class Weights { kGenerate, kShapesOnly };

class GraphBuilder {
 public:
  GraphBuilder(std::string_view model_name, uint64_t seed, Weights weights);

  // Names made while the returned object lives are prefixed with `name` and a dot.
  class [[nodiscard]] Scope {
   public:
    Scope(GraphBuilder* builder, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphBuilder* builder_;
    size_t outer_length_;
  };
  Scope scope(std::string_view name) { return Scope(this, name); }

  Value input(std::string_view name, Shape shape,
              onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT);

  // Makes `x` an output of the model, called `name`. Renames the tensor: `x` is of no use after.
  void output(const Value& x, std::string_view name);

  // A learnable tensor, drawn from N(0, stddev), that is not part of one of the layers below.
  Value parameter(std::string_view name, Shape shape, float stddev);

  // Constants, as the Constant nodes that PyTorch writes for the numbers in a program.
  Value scalar(float value);
  Value integers(std::span<const int64_t> values, Shape shape);
  Value integers(const Shape& values);  // of rank 1
  Value integer(int64_t value);         // of rank 0
  Value floats(std::span<const float> values, Shape shape);

  // Layers with weights. Linear layers on matrices are Gemm, on tensors of higher rank MatMul+Add.
  Value conv(const Value& x, std::string_view name, const ConvOptions& options);
  Value conv_transpose(const Value& x, std::string_view name, const ConvOptions& options);
  Value linear(const Value& x, std::string_view name, int64_t out);
  Value batch_norm(const Value& x, std::string_view name, float epsilon);
  Value layer_norm(const Value& x, std::string_view name, float epsilon);

  // Element by element. The binary ones broadcast.
  Value relu(const Value& x);
  Value clip(const Value& x, float low, float high);
  Value sigmoid(const Value& x);
  Value tanh(const Value& x);
  Value erf(const Value& x);
  Value add(const Value& a, const Value& b);
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value pow(const Value& base, const Value& exponent);

  Value max_pool(const Value& x, const PoolOptions& options);
  Value average_pool(const Value& x, const PoolOptions& options);
  Value global_average_pool(const Value& x);
  Value reduce_mean(const Value& x, const Shape& axes, bool keep_dims);
  Value matmul(const Value& a, const Value& b);
  Value softmax(const Value& x, int64_t axis);

  Value concat(std::span<const Value> parts, int64_t axis);
  Value concat(std::initializer_list<Value> parts, int64_t axis);
  std::vector<Value> split(const Value& x, const Shape& sizes, int64_t axis);
  Value gather(const Value& table, const Value& indices, int64_t axis);
  Value flatten(const Value& x);                      // to a matrix, keeping axis 0
  Value reshape(const Value& x, const Shape& shape);  // one entry may be -1
  Value transpose(const Value& x, const Shape& permutation);
  Value unsqueeze(const Value& x, int64_t axis);
  Value squeeze(const Value& x, int64_t axis);
  Value expand(const Value& x, const Shape& shape);
  Value upsample_nearest(const Value& x, int64_t factor);

  int64_t parameters() const { return parameters_; }
  int64_t multiply_accumulates() const { return multiply_accumulates_; }

  // The model, or the first error.
  StatusOr<onnx::ModelProto> finish() &&;

 private:
  enum class Learnable { kNo, kYes };

  // Records the error unless `condition` holds. Returns whether all is well so far.
  bool expect(bool condition, std::string_view op, const std::string& what);

  // `name` in the current scope, with a number behind it if it is taken.
  std::string unique_name(std::string_view name);

  onnx::NodeProto* add_node(std::string_view op, std::string_view name,
                            std::span<const Value> inputs);
  onnx::NodeProto* add_node(std::string_view op, std::string_view name,
                            std::initializer_list<Value> inputs);
  // Adds an output to `node`.
  Value result(onnx::NodeProto* node, Shape shape, float power,
               onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT);

  // Adds an initializer; its content, if any is wanted, is up to the caller.
  onnx::TensorProto* add_initializer(const std::string& name, const Shape& shape,
                                     Learnable learnable);
  Value normal(const std::string& name, Shape shape, float stddev);
  // The weights of `rows` outputs, each made of `columns` elements of `x`: scaled so that the
  // outputs have power 1, and centered if need be. The rest of `shape` is up to the caller.
  Value filters(const std::string& name, Shape shape, const Value& x, int64_t rows,
                int64_t columns);
  Value uniform(const std::string& name, Shape shape, float low, float high, Learnable learnable);

  Value constant(const onnx::TensorProto& tensor);
  Value unary(std::string_view op, std::string_view name, const Value& x, float power);
  Value binary(std::string_view op, std::string_view name, const Value& a, const Value& b,
               float power);
  Value pool(std::string_view op, std::string_view name, const Value& x, const PoolOptions& options,
             float power);

  onnx::ModelProto model_;
  onnx::GraphProto* graph_;  // of model_
  uint64_t seed_;
  Weights weights_;
  Status status_;
  std::string scope_;  // empty, or ends with a dot
  std::unordered_map<std::string, int> names_;
  std::vector<Value> values_;  // everything that nodes make
  int64_t parameters_ = 0;
  int64_t multiply_accumulates_ = 0;
};

}  // namespace tandem::zoo
