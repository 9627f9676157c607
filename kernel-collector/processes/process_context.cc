#include "kernel-collector/processes/process_context.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

constexpr size_t kMapsBytesMax = 8u << 20;
constexpr int kTriesMax = 3;
constexpr uint32_t kVersion = 2;

struct Header {
  char signature[8];
  uint32_t version;
  uint32_t payload_size;
  uint64_t published_at_ns;  // 0: the process is changing it
  uint64_t payload;          // its address
};
static_assert(sizeof(Header) == 32);

absl::Status Malformed(std::string_view problem) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("process context: {}", problem));
}

// Protobuf's wire format, as far as a resource needs it (protobuf.dev/programming-guides/encoding).
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  struct Field {
    uint32_t number = 0;
    uint32_t type = 0;       // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
    uint64_t value = 0;      // of types 0, 1 and 5
    std::string_view bytes;  // of type 2
  };
  // Returns false at the end, and if the bytes are malformed: then ok() is false.
  bool Next(Field* field) {
    if (!ok_ || bytes_.empty()) return false;
    uint64_t tag = 0;
    ok_ = TakeVarint(&tag) && tag >> 3 != 0 && tag <= UINT32_MAX;
    if (!ok_) return false;
    *field = {static_cast<uint32_t>(tag >> 3), static_cast<uint32_t>(tag & 7), 0, {}};
    switch (field->type) {
      case 0:
        return ok_ = TakeVarint(&field->value);
      case 1:
        return ok_ = TakeFixed(8, &field->value);
      case 2: {
        uint64_t size = 0;
        ok_ = TakeVarint(&size) && size <= bytes_.size();
        if (!ok_) return false;
        field->bytes = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return true;
      }
      case 5:
        return ok_ = TakeFixed(4, &field->value);
      default:
        return ok_ = false;
    }
  }
  bool ok() const { return ok_; }

 private:
  bool TakeVarint(uint64_t* value) {
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool TakeFixed(size_t size, uint64_t* value) {
    if (bytes_.size() < size) return false;
    std::memcpy(value, bytes_.data(), size);
    bytes_.remove_prefix(size);
    return true;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

// Returns an AnyValue (opentelemetry/proto/common/v1/common.proto) as text; nullopt if it has no text form.
std::optional<std::string> TextOf(std::string_view any_value, bool* ok) {
  std::optional<std::string> text;
  Fields fields(any_value);
  for (Fields::Field field; fields.Next(&field);) {
    if (field.number == 1 && field.type == 2) {
      text = field.bytes;
    } else if (field.number == 2 && field.type == 0) {
      text = field.value != 0 ? "true" : "false";
    } else if (field.number == 3 && field.type == 0) {
      text = fmt::format("{}", static_cast<int64_t>(field.value));
    } else if (field.number == 4 && field.type == 1) {
      text = fmt::format("{}", std::bit_cast<double>(field.value));
    }
  }
  *ok = *ok && fields.ok();
  return text;
}

bool AddKeyValue(std::string_view bytes, ProcessContext* context) {
  std::string_view key;
  std::optional<std::string> value;
  bool ok = true;
  Fields fields(bytes);
  for (Fields::Field field; fields.Next(&field);) {
    if (field.number == 1 && field.type == 2) key = field.bytes;
    if (field.number == 2 && field.type == 2) value = TextOf(field.bytes, &ok);
  }
  if (!ok || !fields.ok()) return false;
  if (key.empty() || !value || context->attributes.size() >= kProcessContextAttributesMax) {
    ++context->dropped;
  } else {
    SetAttribute(context->attributes, key, *value);
  }
  return true;
}

bool AddResource(std::string_view bytes, ProcessContext* context) {
  Fields fields(bytes);
  for (Fields::Field field; fields.Next(&field);) {
    if (field.number == 1 && field.type == 2 && !AddKeyValue(field.bytes, context)) return false;
  }
  return fields.ok();
}

absl::Status ReadMemory(const Fd& memory, uint64_t address, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = pread(memory.get(), to, size, static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Malformed("its address is not mapped");
    to += n;
    address += static_cast<size_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProcessContext> DecodeProcessContext(std::string_view message) {
  ProcessContext context;
  Fields fields(message);
  for (Fields::Field field; fields.Next(&field);) {
    if (field.type != 2) continue;
    if (field.number == 1 && !AddResource(field.bytes, &context)) return Malformed("a resource is malformed");
    if (field.number == 2 && !AddKeyValue(field.bytes, &context)) return Malformed("an attribute is malformed");
  }
  if (!fields.ok()) return Malformed("the message is malformed");
  return context;
}

std::optional<uint64_t> FindProcessContext(std::string_view maps) {
  for (size_t at = 0; (at = maps.find("OTEL_CTX", at)) != std::string_view::npos; ++at) {
    const size_t begin = maps.rfind('\n', at) + 1;  // npos + 1 = 0
    const auto entry = ParseMapsLine(maps.substr(begin, maps.find('\n', at) - begin));
    if (!entry) continue;
    for (const std::string_view name : {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"}) {
      if (entry->path == name && entry->end - entry->start >= sizeof(Header)) return entry->start;
    }
  }
  return std::nullopt;
}

absl::StatusOr<ProcessContext> ReadProcessContext(const std::string& proc_root, Pid pid) {
  const std::string process = fmt::format("{}/{}", proc_root, pid.value);
  ASSIGN_OR_RETURN(const std::string maps, ReadSmallFile(process + "/maps", kMapsBytesMax));
  const auto address = FindProcessContext(maps);
  if (!address) return Error(absl::StatusCode::kNotFound, "process context: the process publishes no process context");
  ASSIGN_OR_RETURN(Fd memory, OpenRegularFile(process + "/mem"));
  for (int i = 0; i < kTriesMax; ++i) {
    Header header, after;
    RETURN_IF_ERROR(ReadMemory(memory, *address, reinterpret_cast<char*>(&header), sizeof header));
    if (std::memcmp(header.signature, "OTEL_CTX", sizeof header.signature) != 0) return Malformed("no signature");
    if (header.version != kVersion) return Malformed("unknown version");
    if (header.published_at_ns == 0) continue;
    if (header.payload_size > kProcessContextBytesMax) return Malformed("too large");
    std::string message(header.payload_size, '\0');
    const absl::Status read = ReadMemory(memory, header.payload, message.data(), message.size());
    RETURN_IF_ERROR(ReadMemory(memory, *address, reinterpret_cast<char*>(&after), sizeof after));
    if (std::memcmp(&header, &after, sizeof header) != 0) continue;
    RETURN_IF_ERROR(read);
    return DecodeProcessContext(message);
  }
  return Error(absl::StatusCode::kUnavailable, "process context: the process changed it during the read");
}

}  // namespace tributary
