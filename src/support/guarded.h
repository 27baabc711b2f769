// Exceptions of libraries, and memory running out, as errors: no exception crosses the API.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "tandem/status.h"

namespace tandem {

// What call() returns, a Status or a StatusOr; or what it threw, as an error.
template <typename Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("there is not enough memory");
  } catch (const std::exception& e) {
    return internal_error(std::string("exception: ") + e.what());
  } catch (...) {
    return internal_error("exception of unknown type");
  }
}

}  // namespace tandem
