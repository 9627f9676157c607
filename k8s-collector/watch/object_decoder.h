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

// The fields of a Kubernetes list object that are decoded, apart from `items`.
struct ListEnd {
  std::string resource_version;
  std::string more;  // token of the next page; "" after the last
};

// Decodes JSON of the Kubernetes API to structs. The JSON may be malformed or hostile. Returns InvalidArgument if the
// text is not JSON or not the expected object. Not thread-safe. Reuses its memory for the next object, unless an object
// was large.
class ObjectDecoder {
 public:
  ObjectDecoder();
  ~ObjectDecoder();

  absl::StatusOr<KubeObject> DecodeObject(std::string_view json);
  absl::StatusOr<WatchEvent> DecodeEvent(std::string_view json);
  absl::StatusOr<ListEnd> DecodeListEnd(std::string_view json);
  // Decodes the body of an error answer. If the body is not a Status, returns code 0 and no message.
  ApiError DecodeError(std::string_view json);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
