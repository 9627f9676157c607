#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// Cuts an API server's answer, as it comes in, into the objects that it consists of: one object is kept at a time,
// however long the answer. It looks at quotes and brackets only; whether an object is JSON is for who parses it.
class JsonSplitter {
 public:
  enum class Shape {
    kObjects,  // one object behind the other: a watch
    kItems,    // one object: the objects of its array "items" are what is wanted, and the rest without them
  };
  static constexpr size_t kRestBytesMax = 64u << 10;
  using Take = std::function<bool(std::string_view object)>;

  JsonSplitter(Shape shape, size_t object_bytes_max) : shape_(shape), object_bytes_max_(object_bytes_max) {}

  // `take` is called for each object that is whole, until it returns false, and not for those over `object_bytes_max`.
  // InvalidArgument: this is no such answer; it begins as the message says.
  absl::Status Feed(std::string_view bytes, const Take& take);

  bool whole() const { return depth_ == 0 && begun_; }  // it could end here
  const std::string& rest() const { return rest_; }     // kItems: the outer object, "items" empty
  uint64_t too_large() const { return too_large_; }

 private:
  // Depths at which an object that is wanted begins.
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
  bool skipping_ = false;  // the object at hand is too large
  std::string object_, rest_;
  uint64_t too_large_ = 0;
};

}  // namespace tributary
