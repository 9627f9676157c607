#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/kube_object.h"

namespace tributary {

// An API server's error: meta/v1 Status.
struct ApiError {
  int64_t code = 0;     // an HTTP status; 0: none given
  std::string message;  // at most 1 KiB
};

struct WatchEvent {
  enum class Type { kPut, kDeleted, kBookmark, kError, kUnknown };
  Type type = Type::kUnknown;
  KubeObject object;  // of kPut, kDeleted and kBookmark; a bookmark's object has only a resource version
  ApiError error;     // of kError
};

// The parts of a list around its items.
struct ListEnd {
  std::string resource_version;
  std::string more;  // token of the next page; "" after the last
};

// Decodes JSON of the Kubernetes API to structs. Every byte of it may be wrong. Errors are InvalidArgument: not JSON,
// or not the expected object. Thread: one. Keeps its memory for the next object, unless the object was large.
class ObjectDecoder {
 public:
  ObjectDecoder();
  ~ObjectDecoder();

  absl::StatusOr<KubeObject> DecodeObject(std::string_view json);
  absl::StatusOr<WatchEvent> DecodeEvent(std::string_view json);
  absl::StatusOr<ListEnd> DecodeListEnd(std::string_view json);
  // Decodes a body that may be anything. A body that is not a Status gives a code of 0 and no message.
  ApiError DecodeError(std::string_view json);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
