#include "k8s-collector/watch/object_decoder.h"

#include <simdjson.h>

#include "base/status.h"

namespace tributary {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kMessageBytesMax = 1024;
constexpr size_t kTokenBytesMax = 16u << 10;  // of a page token; kept to be sent back
constexpr size_t kKeepCapacityBytes = 256u << 10;
constexpr size_t kDepthMax = 64;

std::string Text(const object& from, std::string_view key, size_t bytes_max = KubeObject::kTextBytesMax) {
  std::string_view value;
  if (from.at_key(key).get(value) != simdjson::SUCCESS || value.size() > bytes_max) return "";
  return std::string(value);
}

bool Flag(const object& from, std::string_view key) {
  bool value = false;
  return from.at_key(key).get(value) == simdjson::SUCCESS && value;
}

int64_t Number(const object& from, std::string_view key) {
  int64_t value = 0;
  return from.at_key(key).get(value) == simdjson::SUCCESS ? value : 0;
}

// Calls `use` for each element that is an object, at most `max` times.
template <typename Use>
void ForEachObject(const object& from, std::string_view key, size_t max, size_t& left_out, Use use) {
  array elements;
  if (from.at_key(key).get(elements) != simdjson::SUCCESS) return;
  size_t count = 0;
  for (const element each : elements) {
    object one;
    if (each.get(one) != simdjson::SUCCESS) continue;
    if (++count > max) {
      ++left_out;
    } else {
      use(one);
    }
  }
}

void DecodeTexts(const object& from, std::string_view key, KubeObject::Texts& out, size_t& left_out) {
  object fields;
  if (from.at_key(key).get(fields) != simdjson::SUCCESS) return;
  for (const auto field : fields) {
    std::string_view value;
    if (field.value.get(value) != simdjson::SUCCESS) continue;
    if (out.size() >= KubeObject::kLabelsMax || field.key.size() > KubeObject::kTextBytesMax ||
        value.size() > KubeObject::kTextBytesMax) {
      ++left_out;
      continue;
    }
    out.emplace_back(field.key, value);
  }
}

void DecodeMetadata(const object& from, KubeObject& out) {
  out.name = Text(from, "name");
  out.name_space = Text(from, "namespace");
  out.uid = Text(from, "uid");
  out.resource_version = Text(from, "resourceVersion");
  out.created = Text(from, "creationTimestamp");
  DecodeTexts(from, "labels", out.labels, out.left_out);
  DecodeTexts(from, "annotations", out.annotations, out.left_out);
  ForEachObject(from, "ownerReferences", KubeObject::kOwnersMax, out.left_out, [&](const object& owner) {
    out.owners.push_back({Text(owner, "kind"), Text(owner, "name"), Text(owner, "uid"), Flag(owner, "controller")});
  });
}

void DecodeSpec(const object& from, KubeObject& out) {
  out.node_name = Text(from, "nodeName");
  out.host_name = Text(from, "hostname");
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    const bool is_main = std::string_view(list) == "containers";
    ForEachObject(from, list, KubeObject::kContainersMax, out.left_out, [&](const object& container) {
      out.containers.push_back({Text(container, "name"), Text(container, "image"), is_main});
    });
  }
}

std::string LastContainerId(const object& status) {
  object last, terminated;
  if (status.at_key("lastState").get(last) != simdjson::SUCCESS) return "";
  if (last.at_key("terminated").get(terminated) != simdjson::SUCCESS) return "";
  return Text(terminated, "containerID");
}

void DecodeStatus(const object& from, KubeObject& out) {
  out.ip = Text(from, "podIP");
  for (const char* list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    ForEachObject(from, list, KubeObject::kContainersMax, out.left_out, [&](const object& status) {
      out.statuses.push_back({.name = Text(status, "name"),
                              .id = Text(status, "containerID"),
                              .last_id = LastContainerId(status),
                              .image = Text(status, "image"),
                              .image_id = Text(status, "imageID"),
                              .restarts = Number(status, "restartCount")});
    });
  }
}

absl::Status Malformed(std::string_view problem) { return Error(absl::StatusCode::kInvalidArgument, problem); }

absl::StatusOr<KubeObject> FromJson(const object& from) {
  KubeObject out;
  object part;
  if (from.at_key("metadata").get(part) != simdjson::SUCCESS) return Malformed("an object without metadata");
  DecodeMetadata(part, out);
  if (from.at_key("spec").get(part) == simdjson::SUCCESS) DecodeSpec(part, out);
  if (from.at_key("status").get(part) == simdjson::SUCCESS) DecodeStatus(part, out);
  return out;
}

ApiError ErrorFromJson(const object& from) {
  return {.code = Number(from, "code"), .message = Text(from, "message", kMessageBytesMax)};
}

WatchEvent::Type TypeOf(std::string_view name) {
  if (name == "ADDED" || name == "MODIFIED") return WatchEvent::Type::kPut;
  if (name == "DELETED") return WatchEvent::Type::kDeleted;
  if (name == "BOOKMARK") return WatchEvent::Type::kBookmark;
  if (name == "ERROR") return WatchEvent::Type::kError;
  return WatchEvent::Type::kUnknown;
}

}  // namespace

struct ObjectDecoder::Impl {
  std::unique_ptr<simdjson::dom::parser> parser;
  std::string padded;  // padded, because the parser reads beyond an object's end; it would copy each object otherwise

  absl::StatusOr<object> Parse(std::string_view json) {
    if (parser == nullptr || parser->capacity() > kKeepCapacityBytes) {
      parser = std::make_unique<simdjson::dom::parser>();
      if (parser->allocate(4096, kDepthMax) != simdjson::SUCCESS) {
        return Error(absl::StatusCode::kResourceExhausted, "no memory for JSON");
      }
    }
    if (padded.capacity() > kKeepCapacityBytes) padded = std::string();
    padded.assign(json);
    padded.append(simdjson::SIMDJSON_PADDING, ' ');
    object out;
    if (simdjson::error_code error = parser->parse(padded.data(), json.size(), /*realloc_if_needed=*/false).get(out);
        error != simdjson::SUCCESS) {
      return Malformed(simdjson::error_message(error));
    }
    return out;
  }
};

ObjectDecoder::ObjectDecoder() : impl_(std::make_unique<Impl>()) {}
ObjectDecoder::~ObjectDecoder() = default;

absl::StatusOr<KubeObject> ObjectDecoder::DecodeObject(std::string_view json) {
  ASSIGN_OR_RETURN(const object from, impl_->Parse(json));
  return FromJson(from);
}

absl::StatusOr<WatchEvent> ObjectDecoder::DecodeEvent(std::string_view json) {
  ASSIGN_OR_RETURN(const object from, impl_->Parse(json));
  WatchEvent out;
  object inner;
  std::string_view type;
  if (from.at_key("type").get(type) != simdjson::SUCCESS || from.at_key("object").get(inner) != simdjson::SUCCESS) {
    return Malformed("not an event");
  }
  out.type = TypeOf(type);
  if (out.type == WatchEvent::Type::kUnknown) return out;
  if (out.type == WatchEvent::Type::kError) {
    out.error = ErrorFromJson(inner);
    return out;
  }
  ASSIGN_OR_RETURN(out.object, FromJson(inner));
  return out;
}

absl::StatusOr<ListEnd> ObjectDecoder::DecodeListEnd(std::string_view json) {
  ASSIGN_OR_RETURN(const object from, impl_->Parse(json));
  object metadata;
  if (!Text(from, "kind").ends_with("List") || from.at_key("metadata").get(metadata) != simdjson::SUCCESS) {
    return Malformed("not a list");
  }
  ListEnd out{.resource_version = Text(metadata, "resourceVersion"),
              .more = Text(metadata, "continue", kTokenBytesMax)};
  if (out.resource_version.empty()) return Malformed("a list without a resource version");
  return out;
}

ApiError ObjectDecoder::DecodeError(std::string_view json) {
  absl::StatusOr<object> from = impl_->Parse(json);
  if (!from.ok() || Text(*from, "kind") != "Status") return {};
  return ErrorFromJson(*from);
}

}  // namespace tributary
