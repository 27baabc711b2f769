// A thin layer over OpenCL's C interface: owned handles, and errors as Status.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <string>
#include <string_view>
#include <utility>

#include "tandem/status.h"

namespace tandem::opencl {

// "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);

// Ok, or "WHAT failed: CL_...": kResourceExhausted where that is what the code says, else
// kDeviceError.
Status check(cl_int code, std::string_view what);

// Owns one reference to an OpenCL object.
template <typename Handle, cl_int (*release)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) release(handle_);
  }

  Handle get() const { return handle_; }
  // For calls that store a handle; there must be none yet.
  Handle* receive() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};

using Context = Owned<cl_context, clReleaseContext>;
using Queue = Owned<cl_command_queue, clReleaseCommandQueue>;
using Program = Owned<cl_program, clReleaseProgram>;
using Kernel = Owned<cl_kernel, clReleaseKernel>;
using Event = Owned<cl_event, clReleaseEvent>;
using Buffer = Owned<cl_mem, clReleaseMemObject>;

StatusOr<Kernel> make_kernel(cl_program program, const std::string& name);

}  // namespace tandem::opencl
