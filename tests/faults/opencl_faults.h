// Faults of an OpenCL device, at will. The tests' executable defines OpenCL's functions itself, so
// that the calls of the library in it come here first, and go on to the driver from here.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <chrono>

namespace tandem::testing::opencl_faults {

// From the `n`-th call on that a device at work can fail (0: the next one), every such call returns
// `code`, as if the device were lost, until heal(). What was enqueued before still runs, which that
// of a lost device would not: calls after which the caller may take the device to be idle return
// only when it is.
void lose_device_at(int n, cl_int code);
// The `n`-th kernel enqueued from now on takes `time` longer, or until heal().
void stall_kernel_at(int n, std::chrono::milliseconds time);
// Events tell of an error instead of the end of what they stand for, from the n-th callback on.
void fail_events_from(int n, cl_int code);
// The n-th allocation of shared memory from now on fails, and so do those after it.
void fail_allocations_from(int n);

// No faults any more; waits until the device is idle.
void heal();

// Calls that a device at work can fail, and allocations, since the last heal().
int calls();
int allocations();
// Bytes of shared memory that were allocated, and not freed.
long long bytes_held();

}  // namespace tandem::testing::opencl_faults
