// A part of a text that several own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tandem::predict {

// Of a file that has been read whole: its parts are not copied, and keep it.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text)  // NOLINT(google-explicit-constructor): a text is one
      : whole_(std::make_shared<const std::string>(std::move(text))), part_(*whole_) {}

  // Beyond the end: as much as there is.
  SharedText part(size_t begin, size_t length) const {
    SharedText result = *this;
    result.part_ = begin > part_.size() ? std::string_view() : part_.substr(begin, length);
    return result;
  }
  std::string_view view() const { return part_; }

 private:
  std::shared_ptr<const std::string> whole_;
  std::string_view part_;
};

}  // namespace tandem::predict
