// Memory of a device that the host cannot share while kernels run: coarse-grained shared virtual
// memory, and copies between it and the host's.
#pragma once

#include <memory>
#include <vector>

#include "lane/lane.h"
#include "lane/opencl/api.h"
#include "lane/opencl/command_queue.h"
#include "lane/rows.h"

namespace tandem::opencl {

// How copies of strided regions are made. Which ones a driver gets right is found by trial.
enum class CopyMethod : uint8_t {
  kRectangles,  // one command each, through a buffer that stands for the same memory
  kRows,        // one command per row, on the memory itself
};

// A piece of a device's memory, zeroed. Its addresses are good for kernels, not for the host.
class DeviceBlock {
 public:
  static StatusOr<DeviceBlock> create(cl_context context, CommandQueue& queue, size_t bytes,
                                      CopyMethod method);

  std::byte* data() const { return memory_.get(); }
  const std::shared_ptr<std::byte>& memory() const { return memory_; }
  // Enqueue a copy of `rows`, which begin at `offset` here and at `host` there; the rows' own
  // offset is not looked at.
  Status enqueue_upload(CommandQueue& queue, const void* host, int64_t offset,
                        const Rows& rows) const;
  Status enqueue_download(CommandQueue& queue, void* host, int64_t offset, const Rows& rows) const;

 private:
  // Calls copy(offset from the first row, rows) for what one command may copy: rows one by one, or
  // a rectangle, apart from a last row that the rest of its pitch does not follow here, which some
  // drivers refuse.
  template <typename Copy>  // Status(int64_t, const Rows&)
  Status copy_pieces(int64_t offset, const Rows& rows, const Copy& copy) const;

  std::shared_ptr<std::byte> memory_;
  size_t bytes_ = 0;
  Buffer buffer_;  // the same memory; null for kRows
};

// Copies of everything that some bindings point at. What lies together on the host lies together
// here, so that tensors inside others stay there.
class DeviceMirror {
 public:
  // Constants are copied at once, of all else nothing.
  static StatusOr<std::unique_ptr<DeviceMirror>> create(cl_context context, CommandQueue& queue,
                                                        CopyMethod method, const Graph& graph,
                                                        const TensorBindings& host);

  // The same tensors in the device's memory.
  const TensorBindings& bindings() const { return device_; }
  Status enqueue_upload(TensorId tensor, const Region& region) const;
  Status enqueue_download(TensorId tensor, const Region& region) const;
  size_t bytes() const { return bytes_; }

 private:
  struct Piece {
    std::byte* begin = nullptr;  // of the host
    std::byte* end = nullptr;
    DeviceBlock block;
  };

  DeviceMirror(CommandQueue& queue, const TensorBindings& host) : queue_(queue), host_(host) {}
  // Null for tensors that have no memory.
  const Piece* piece_of(const void* host) const;

  CommandQueue& queue_;
  TensorBindings host_;
  TensorBindings device_;
  std::vector<Piece> pieces_;  // ascending
  size_t bytes_ = 0;
};

// Which method the device gets right; kDeviceError if none.
StatusOr<CopyMethod> choose_copy_method(cl_context context, CommandQueue& queue, cl_kernel pass_on);

}  // namespace tandem::opencl
