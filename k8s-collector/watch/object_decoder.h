#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/kube_object.h"

namespace tributary {

// What an API server says when it says no: meta/v1 Status.
struct ApiError {
  int64_t code = 0;     // as of HTTP; 0: none given
  std::string message;  // at most 1 KiB
};

struct WatchEvent {
  enum class Type { kPut, kDeleted, kBookmark, kError, kUnknown };
  Type type = Type::kUnknown;
  KubeObject object;  // of the first three; a bookmark has but a resource version
  ApiError error;     // of kError
};

// What surrounds the items of a list.
struct ListEnd {
  std::string resource_version;
  std::string more;  // token of the next page; "" after the last
};

// JSON of the Kubernetes API, of which every byte may be wrong, to structs. Errors are InvalidArgument: no JSON, or not
// what was asked for. One thread; keeps its memory for the next object unless that was a large one.
class ObjectDecoder {
 public:
  ObjectDecoder();
  ~ObjectDecoder();

  absl::StatusOr<KubeObject> DecodeObject(std::string_view json);
  absl::StatusOr<WatchEvent> DecodeEvent(std::string_view json);
  absl::StatusOr<ListEnd> DecodeListEnd(std::string_view json);
  // Of a body that may be anything: what is no Status leaves a code of 0 and no message.
  ApiError DecodeError(std::string_view json);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
