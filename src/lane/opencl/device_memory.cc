#include "lane/opencl/device_memory.h"

#include <algorithm>
#include <numeric>

#include "fmt/format.h"

namespace tandem::opencl {
namespace {

constexpr int64_t kLineBytes = 64;
// Kernels may read, not write, a little past a tensor's last row.
constexpr size_t kSlackBytes = 256;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Where a rectangle of a buffer begins. Rows that begin inside one pitch and end in the next are
// told by their bytes alone.
std::array<size_t, 3> origin_of(int64_t offset, const Rows& rows) {
  const int64_t column = offset % rows.pitch;
  if (column + rows.bytes > rows.pitch) return {static_cast<size_t>(offset), 0, 0};
  return {static_cast<size_t>(column), static_cast<size_t>(offset / rows.pitch), 0};
}

}  // namespace

StatusOr<DeviceBlock> DeviceBlock::create(cl_context context, CommandQueue& queue, size_t bytes,
                                          CopyMethod method) {
  DeviceBlock block;
  const auto whole =
      static_cast<size_t>(round_up(static_cast<int64_t>(bytes + kSlackBytes), kLineBytes));
  void* memory = clSVMAlloc(context, CL_MEM_READ_WRITE, whole, kLineBytes);
  if (!memory) {
    return resource_exhausted(fmt::format("the device has no {} bytes in one piece", whole));
  }
  block.bytes_ = whole;
  block.memory_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                             [context](std::byte* p) { clSVMFree(context, p); });
  const cl_uint zero = 0;
  TANDEM_RETURN_IF_ERROR(check(clEnqueueSVMMemFill(queue.get(), memory, &zero, sizeof(zero), whole,
                                                   0, nullptr, queue.event()),
                               "clEnqueueSVMMemFill"));
  TANDEM_RETURN_IF_ERROR(check(clFinish(queue.get()), "clFinish after clEnqueueSVMMemFill"));
  if (method == CopyMethod::kRectangles) {
    cl_int code = CL_SUCCESS;
    block.buffer_ = Buffer(
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, whole, memory, &code));
    TANDEM_RETURN_IF_ERROR(check(code, "clCreateBuffer of shared virtual memory"));
  }
  return block;
}

template <typename Copy>
Status DeviceBlock::copy_pieces(int64_t offset, const Rows& rows, const Copy& copy) const {
  int64_t most = rows.count;
  if (!buffer_.get()) {
    most = 1;
  } else if (rows.count > 1 && offset + rows.count * rows.pitch > static_cast<int64_t>(bytes_)) {
    most = rows.count - 1;
  }
  for (int64_t row = 0; row < rows.count; row += most) {
    const Rows piece{rows.offset, rows.bytes, std::min(most, rows.count - row), rows.pitch};
    TANDEM_RETURN_IF_ERROR(copy(row * rows.pitch, piece));
  }
  return {};
}

Status DeviceBlock::enqueue_upload(CommandQueue& queue, const void* host, int64_t offset,
                                   const Rows& rows) const {
  return copy_pieces(offset, rows, [&](int64_t at, const Rows& piece) {
    const std::byte* from = static_cast<const std::byte*>(host) + at;
    const auto bytes = static_cast<size_t>(piece.bytes);
    if (!buffer_.get()) {
      return check(clEnqueueSVMMemcpy(queue.get(), CL_FALSE, data() + offset + at, from, bytes, 0,
                                      nullptr, queue.event()),
                   "clEnqueueSVMMemcpy to the device");
    }
    if (piece.count == 1) {
      return check(clEnqueueWriteBuffer(queue.get(), buffer_.get(), CL_FALSE,
                                        static_cast<size_t>(offset + at), bytes, from, 0, nullptr,
                                        queue.event()),
                   "clEnqueueWriteBuffer");
    }
    const std::array<size_t, 3> zero{0, 0, 0};
    const std::array<size_t, 3> origin = origin_of(offset + at, piece);
    const std::array<size_t, 3> extent{bytes, static_cast<size_t>(piece.count), 1};
    const auto pitch = static_cast<size_t>(piece.pitch);
    return check(clEnqueueWriteBufferRect(queue.get(), buffer_.get(), CL_FALSE, origin.data(),
                                          zero.data(), extent.data(), pitch, 0, pitch, 0, from, 0,
                                          nullptr, queue.event()),
                 "clEnqueueWriteBufferRect");
  });
}

Status DeviceBlock::enqueue_download(CommandQueue& queue, void* host, int64_t offset,
                                     const Rows& rows) const {
  return copy_pieces(offset, rows, [&](int64_t at, const Rows& piece) {
    std::byte* to = static_cast<std::byte*>(host) + at;
    const auto bytes = static_cast<size_t>(piece.bytes);
    if (!buffer_.get()) {
      return check(clEnqueueSVMMemcpy(queue.get(), CL_FALSE, to, data() + offset + at, bytes, 0,
                                      nullptr, queue.event()),
                   "clEnqueueSVMMemcpy to the host");
    }
    if (piece.count == 1) {
      return check(clEnqueueReadBuffer(queue.get(), buffer_.get(), CL_FALSE,
                                       static_cast<size_t>(offset + at), bytes, to, 0, nullptr,
                                       queue.event()),
                   "clEnqueueReadBuffer");
    }
    const std::array<size_t, 3> zero{0, 0, 0};
    const std::array<size_t, 3> origin = origin_of(offset + at, piece);
    const std::array<size_t, 3> extent{bytes, static_cast<size_t>(piece.count), 1};
    const auto pitch = static_cast<size_t>(piece.pitch);
    return check(
        clEnqueueReadBufferRect(queue.get(), buffer_.get(), CL_FALSE, origin.data(), zero.data(),
                                extent.data(), pitch, 0, pitch, 0, to, 0, nullptr, queue.event()),
        "clEnqueueReadBufferRect");
  });
}

StatusOr<std::unique_ptr<DeviceMirror>> DeviceMirror::create(cl_context context,
                                                             CommandQueue& queue, CopyMethod method,
                                                             const Graph& graph,
                                                             const TensorBindings& host) {
  // Pieces of the host's memory that are this close to each other are mirrored as one.
  constexpr int64_t kGap = 4096;
  std::unique_ptr<DeviceMirror> mirror(new DeviceMirror(queue, host));
  std::vector<std::pair<std::byte*, std::byte*>> spans;
  for (const TensorView& view : host.views) {
    auto* begin = view.as<std::byte>();
    if (begin) spans.emplace_back(begin, begin + round_up(span_in_bytes(view), kLineBytes));
  }
  std::sort(spans.begin(), spans.end());
  for (const auto& [begin, end] : spans) {
    if (!mirror->pieces_.empty() && begin - mirror->pieces_.back().end <= kGap) {
      mirror->pieces_.back().end = std::max(mirror->pieces_.back().end, end);
    } else {
      mirror->pieces_.push_back({begin, end, {}});
    }
  }
  for (Piece& piece : mirror->pieces_) {
    const auto bytes = static_cast<size_t>(piece.end - piece.begin);
    TANDEM_ASSIGN_OR_RETURN(piece.block, DeviceBlock::create(context, queue, bytes, method));
    mirror->bytes_ += bytes;
  }
  for (size_t t = 0; t < host.views.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    TensorView view = host[id];
    if (const Piece* piece = mirror->piece_of(view.data)) {
      view.data = piece->block.data() + (view.as<std::byte>() - piece->begin);
    }
    mirror->device_.views.push_back(std::move(view));
    if (graph.tensor(id).kind == TensorKind::kConstant) {
      TANDEM_RETURN_IF_ERROR(mirror->enqueue_upload(id, whole_region(graph.tensor(id).dims)));
    }
  }
  TANDEM_RETURN_IF_ERROR(check(clFinish(queue.get()), "clFinish after copying constants"));
  return mirror;
}

const DeviceMirror::Piece* DeviceMirror::piece_of(const void* host) const {
  if (!host) return nullptr;
  const auto* address = static_cast<const std::byte*>(host);
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), address,
                       [](const std::byte* a, const Piece& piece) { return a < piece.begin; });
  return &*std::prev(after);
}

Status DeviceMirror::enqueue_upload(TensorId tensor, const Region& region) const {
  const TensorView& view = host_[tensor];
  const Piece* piece = piece_of(view.data);
  if (!piece) return {};
  for (const Rows& rows : rows_of(view, region)) {
    const std::byte* from = view.as<std::byte>() + rows.offset;
    TANDEM_RETURN_IF_ERROR(piece->block.enqueue_upload(queue_, from, from - piece->begin, rows));
  }
  return {};
}

Status DeviceMirror::enqueue_download(TensorId tensor, const Region& region) const {
  const TensorView& view = host_[tensor];
  const Piece* piece = piece_of(view.data);
  if (!piece) return {};
  for (const Rows& rows : rows_of(view, region)) {
    std::byte* to = view.as<std::byte>() + rows.offset;
    TANDEM_RETURN_IF_ERROR(piece->block.enqueue_download(queue_, to, to - piece->begin, rows));
  }
  return {};
}

namespace {

// Words go to the device by one kind of copy, a kernel passes them on, increased by one, and they
// come back by the other.
Status try_copies(cl_context context, CommandQueue& queue, cl_kernel pass_on, CopyMethod method) {
  constexpr int64_t kWords = 1024;
  constexpr int64_t kWidth = sizeof(cl_uint);
  TANDEM_ASSIGN_OR_RETURN(const DeviceBlock from,
                          DeviceBlock::create(context, queue, kWords * kWidth, method));
  TANDEM_ASSIGN_OR_RETURN(const DeviceBlock to,
                          DeviceBlock::create(context, queue, kWords * kWidth, method));
  std::vector<cl_uint> words(kWords);
  std::iota(words.begin(), words.end(), 1000);
  std::vector<cl_uint> back(kWords, 0);
  // Rows inside one pitch, rows that go over its end, and a single one.
  const std::vector<Rows> trials = {{4 * kWidth, 8 * kWidth, 12, 24 * kWidth},
                                    {410 * kWidth, 16 * kWidth, 20, 20 * kWidth},
                                    {900 * kWidth, 33 * kWidth, 1, 33 * kWidth}};
  const auto at = [](std::vector<cl_uint>& all, const Rows& rows) {
    return reinterpret_cast<std::byte*>(all.data()) + rows.offset;
  };
  const auto enqueue = [&]() -> Status {
    for (const Rows& rows : trials) {
      TANDEM_RETURN_IF_ERROR(from.enqueue_upload(queue, at(words, rows), rows.offset, rows));
    }
    const cl_int count = kWords;
    TANDEM_RETURN_IF_ERROR(check(clSetKernelArgSVMPointer(pass_on, 0, from.data()), "pass_on"));
    TANDEM_RETURN_IF_ERROR(check(clSetKernelArgSVMPointer(pass_on, 1, to.data()), "pass_on"));
    TANDEM_RETURN_IF_ERROR(check(clSetKernelArg(pass_on, 2, sizeof(count), &count), "pass_on"));
    TANDEM_RETURN_IF_ERROR(enqueue_single(queue, pass_on, "pass_on"));
    for (const Rows& rows : trials) {
      TANDEM_RETURN_IF_ERROR(to.enqueue_download(queue, at(back, rows), rows.offset, rows));
    }
    return {};
  };
  const Status enqueued = enqueue();
  // Whatever happened, commands that are in the queue use the words.
  const Status finished = check(clFinish(queue.get()), "clFinish after copies");
  TANDEM_RETURN_IF_ERROR(enqueued);
  TANDEM_RETURN_IF_ERROR(finished);
  std::vector<cl_uint> expected(kWords, 0);
  for (const Rows& rows : trials) {
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t i = 0; i < rows.bytes / kWidth; ++i) {
        const int64_t word = (rows.offset + row * rows.pitch) / kWidth + i;
        expected[word] = words[word] + 1;
      }
    }
  }
  return back == expected ? Status()
                          : device_error("copies to the device and back changed their data");
}

}  // namespace

StatusOr<CopyMethod> choose_copy_method(cl_context context, CommandQueue& queue,
                                        cl_kernel pass_on) {
  if (try_copies(context, queue, pass_on, CopyMethod::kRectangles).ok()) {
    return CopyMethod::kRectangles;
  }
  TANDEM_RETURN_IF_ERROR(try_copies(context, queue, pass_on, CopyMethod::kRows));
  return CopyMethod::kRows;
}

}  // namespace tandem::opencl
