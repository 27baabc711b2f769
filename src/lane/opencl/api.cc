#include "lane/opencl/api.h"

#include "fmt/format.h"

namespace tandem::opencl {
namespace {

// Of the ICD loader: there is no driver.
constexpr cl_int kPlatformNotFound = -1001;

const char* short_name(cl_int code) {
  switch (code) {
    case CL_DEVICE_NOT_FOUND:
      return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE:
      return "CL_DEVICE_NOT_AVAILABLE";
    case CL_COMPILER_NOT_AVAILABLE:
      return "CL_COMPILER_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
      return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
      return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
      return "CL_BUILD_PROGRAM_FAILURE";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case CL_INVALID_VALUE:
      return "CL_INVALID_VALUE";
    case CL_INVALID_BINARY:
      return "CL_INVALID_BINARY";
    case CL_INVALID_BUILD_OPTIONS:
      return "CL_INVALID_BUILD_OPTIONS";
    case CL_INVALID_PROGRAM_EXECUTABLE:
      return "CL_INVALID_PROGRAM_EXECUTABLE";
    case CL_INVALID_KERNEL_NAME:
      return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_ARG_INDEX:
      return "CL_INVALID_ARG_INDEX";
    case CL_INVALID_ARG_VALUE:
      return "CL_INVALID_ARG_VALUE";
    case CL_INVALID_ARG_SIZE:
      return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_KERNEL_ARGS:
      return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_OPERATION:
      return "CL_INVALID_OPERATION";
    case kPlatformNotFound:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "OpenCL error";
  }
}

}  // namespace

std::string error_name(cl_int code) { return fmt::format("{} ({})", short_name(code), code); }

Status check(cl_int code, std::string_view what) {
  std::string message = fmt::format("{} failed: {}", what, error_name(code));
  switch (code) {
    case CL_SUCCESS:
      return {};
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return resource_exhausted(std::move(message));
    case CL_DEVICE_NOT_AVAILABLE:
      return device_error(message +
                          "; the device is lost to this process: go on without it, or start anew");
    default:
      return device_error(std::move(message));
  }
}

StatusOr<Kernel> make_kernel(cl_program program, const std::string& name) {
  cl_int code = CL_SUCCESS;
  Kernel kernel(clCreateKernel(program, name.c_str(), &code));
  TANDEM_RETURN_IF_ERROR(check(code, "clCreateKernel of " + name));
  return kernel;
}

}  // namespace tandem::opencl
