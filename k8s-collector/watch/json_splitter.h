#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// Splits an API server's answer into its objects while the answer arrives. Keeps only one object at a time in memory,
// even if the answer is long. Finds the ends of objects only by quotes and brackets. So the caller's parser must check
// that an object is valid JSON.
class JsonSplitter {
 public:
  enum class Shape {
    kObjects,  // one object after the other: a watch
    kItems,    // one object with an array "items": `take` gets the array's objects, rest() returns the other parts
  };
  static constexpr size_t kRestBytesMax = 64u << 10;
  using Take = std::function<bool(std::string_view object)>;

  JsonSplitter(Shape shape, size_t object_bytes_max) : shape_(shape), object_bytes_max_(object_bytes_max) {}

  // Processes the next bytes of the answer. Calls `take` for each complete object, until `take` returns false. Skips
  // objects larger than `object_bytes_max`. Returns InvalidArgument if the answer does not have the form of `shape`.
  // The message contains the bytes where this was found.
  absl::Status Feed(std::string_view bytes, const Take& take);

  bool whole() const { return depth_ == 0 && begun_; }  // the answer could end here
  const std::string& rest() const { return rest_; }     // kItems: the outer object, with "items" empty
  uint64_t too_large() const { return too_large_; }

 private:
  // Returns the nesting depth at which the objects for `take` begin.
  size_t outside() const { return shape_ == Shape::kObjects ? 0 : 2; }
  bool at_items() const;
  absl::Status FeedOutside(char c);
  size_t PassObject(std::string_view bytes);
  void KeepObject(std::string_view part);
  bool PassString(char c);
  void KeepRest(char c);

  const Shape shape_;
  const size_t object_bytes_max_;
  size_t depth_ = 0;
  bool begun_ = false;
  bool in_string_ = false, escaped_ = false;
  bool in_items_ = false, in_object_ = false;
  bool skipping_ = false;  // the current object is too large
  std::string object_, rest_;
  uint64_t too_large_ = 0;
};

}  // namespace tributary
