#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "otlp/generation.h"
#include "profile/attributes.h"
#include "profile/executable_id.h"
#include "profile/model.h"

namespace opentelemetry::proto::collector::profiles::v1development {
class ExportProfilesServiceRequest;
}
namespace opentelemetry::proto::profiles::v1development {
class Profile;
class ProfilesDictionary;
}  // namespace opentelemetry::proto::profiles::v1development

namespace tributary::otlp {

class LogSize;

using ProfilesRequest = ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceRequest;
// Deletes a request. With this deleter, code that owns a request need not include protobuf's headers.
struct DeleteRequest {
  void operator()(ProfilesRequest* request) const;
};
using ProfilesRequestPtr = std::unique_ptr<ProfilesRequest, DeleteRequest>;

// Indices into the tables of one request. Index 0 means "not set", except for the types with the comment "from 0".
using MappingIndex = Strong<struct OtlpMappingTag, int32_t>;
using FunctionIndex = Strong<struct OtlpFunctionTag, int32_t>;
using LocationIndex = Strong<struct OtlpLocationTag, int32_t>;
using StackIndex = Strong<struct OtlpStackTag, int32_t>;
using LinkIndex = Strong<struct OtlpLinkTag, int32_t>;
using TypeIndex = Strong<struct OtlpTypeTag, int32_t>;              // of samples, from 0
using ResourceIndex = Strong<struct OtlpResourceTag, int32_t>;      // from 0
using AttributesIndex = Strong<struct OtlpAttributesTag, int32_t>;  // a sample's set of attributes; 0: none

// The thread of a sample. Empty or unset fields get no attribute in the request.
struct ThreadInfo {
  std::string thread_name;
  std::string executable_name;
  std::string executable_path;
  std::optional<Pid> pid;
  std::optional<Tid> tid;
};

// Builds one OTLP profiles request (protocol 1.10 and 1.11). Fulfils every MUST and SHOULD of the protocol: tables have
// no duplicates, element 0 is the zero value, and equal samples are merged. For each sample, call the Add methods for
// everything that the sample refers to, and then AddSample. Add only entries that a sample uses, because the protocol
// discourages unused entries.
//
// CPU samples become Profiles with the sample type `samples/count`, one Profile for each sampling period. Their entries
// have only time stamps, and the count is the number of time stamps. If one sample has a large count, its entry has the
// count as its value instead. The CPU time is count × period. The count and the CPU time are exact. Samples of another
// type become Profiles with the name and unit of the type, and with a value for each time stamp.
//
// The address of a frame is the one with which names are looked up: for a call, the return address minus 1. Addresses
// are virtual addresses of the ELF file. So a mapping starts at 0 and ends after the highest address that occurs in it.
//
// Strings are converted to UTF-8 and cut to kStringBytesMax. When the request has bytes_soft bytes, full() returns
// true: the caller must then call Finish instead of adding another sample. Above bytes_hard, long new strings are
// replaced by "" and counted. So a request is never larger than a gRPC server accepts (4 MiB by default). Not
// thread-safe.
class ProfilesBuilder {
 public:
  static constexpr size_t kStringBytesMax = 16'384;
  static constexpr TypeIndex kCpu{0};
  static constexpr size_t kStackFramesMax = 1024;  // of a deeper stack, the frames nearest to the leaf are kept
  // What bytes() counts: the request itself, or the logs that MakeLogs makes of it, with a record for each stack or for
  // each sample.
  enum class SizeOf { kProfiles, kStackLogs, kSampleLogs };
  struct Options {
    SizeOf size_of = SizeOf::kProfiles;
    Generation generation = Generation::kNewest;  // in which the request will be sent: bytes() counts this layout
    bool aggregated = false;                      // a value for each stack and thread, without time stamps
    size_t bytes_soft = 2'500'000;
    size_t bytes_hard = 3'700'000;
    std::string scope_name = "tributary";
    std::string scope_version;
  };
  explicit ProfilesBuilder(Options options);
  ~ProfilesBuilder();
  ProfilesBuilder(const ProfilesBuilder&) = delete;
  ProfilesBuilder& operator=(const ProfilesBuilder&) = delete;

  // Returns the ResourceProfiles with these attributes. Adds it if it is new. The attributes keep their order.
  // profile/attribute_types.h defines the types of their values. Attributes with an empty value are left out.
  ResourceIndex AddResource(const Attributes& attributes);
  AttributesIndex AddThread(const ThreadInfo& info);
  // Returns the attributes of the thread, plus the attribute tributary.stack.ending. If the stack is complete or has no
  // user part, returns `thread` unchanged.
  AttributesIndex AddEnding(AttributesIndex thread, Ending ending);
  // Returns the attributes `others` plus a sample's own attributes, such as labels of pprof. Leaves out own attributes
  // with a key that `others` has, with a key of this project, or that do not fit into the request.
  AttributesIndex AddOwn(AttributesIndex others, const Attributes& own);
  // Returns "not set" if one of the ids is invalid (profile/attributes.h).
  LinkIndex AddLink(std::string_view trace_id, std::string_view span_id);
  // Returns "not set" if `id` is unknown (ExecutableIdKind::kNone).
  MappingIndex AddMapping(const ExecutableId& id, std::string_view path);
  // Returns "not set" if `name` is empty or does not fit into the request. `system_name`: the linkage name, which may
  // be mangled, or "" if it is the same as `name`. `file`: the source file, or "" if it is unknown.
  FunctionIndex AddFunction(std::string_view name, std::string_view system_name, std::string_view file = {});
  struct Line {
    FunctionIndex function;
    uint32_t line = 0;  // 0: unknown
    friend auto operator<=>(const Line&, const Line&) = default;
  };
  // `lines`: the functions at this address, the innermost inlined function first and the function that contains all of
  // them last. Empty: no name is known.
  LocationIndex AddLocation(FrameKind kind, MappingIndex mapping, uint64_t address, const std::vector<Line>& lines);
  TypeIndex AddType(const SampleTypeInfo& type);
  StackIndex AddStack(std::span<const LocationIndex> leaf_first);

  struct SampleInfo {
    ResourceIndex resource;
    AttributesIndex attributes;
    LinkIndex link;
    StackIndex stack;
    TypeIndex type = kCpu;
    UnixNs time;
    uint64_t value = 0;
    uint32_t count = 1;
  };
  void AddSample(const SampleInfo& sample);

  bool full() const { return bytes_ >= options_.bytes_soft; }
  uint64_t sample_count() const { return sample_count_; }        // Σ count of the samples added
  uint64_t dropped_strings() const { return dropped_strings_; }  // left empty because the request was full
  size_t bytes() const { return bytes_; }                        // an upper bound of the serialized size

  // Returns the request. Do not use this object afterwards.
  ProfilesRequestPtr Finish();

 private:
  using Profile = ::opentelemetry::proto::profiles::v1development::Profile;
  using Dictionary = ::opentelemetry::proto::profiles::v1development::ProfilesDictionary;
  enum class Shape { kTimestamps, kAggregate, kValues };
  struct ProfileKey {
    TypeIndex type;
    Shape shape;
    int64_t period;
    friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
  };
  struct OpenProfile;
  struct OpenResource;

  bool NoRoomFor(std::string_view text);
  // In 1.7, each attribute contains its key, and each profile contains its stacks.
  bool is_1_7() const { return options_.generation == Generation::k1_7; }
  size_t KeyBytes(std::string_view key) const { return is_1_7() ? key.size() : 0; }
  int32_t String(std::string_view text);
  int32_t StringAttribute(std::string_view key, std::string_view value);
  int32_t IntAttribute(std::string_view key, int64_t value);
  AttributesIndex AttributeSet(std::vector<int32_t> set);
  OpenProfile& FindProfile(ResourceIndex resource, const ProfileKey& key);
  void Append(const SampleInfo& sample, const ProfileKey& key, int64_t value, uint32_t times);

  const Options options_;
  ProfilesRequestPtr request_;
  Dictionary* dictionary_;  // of *request_
  size_t bytes_;
  uint64_t sample_count_ = 0;
  uint64_t dropped_strings_ = 0;

  absl::flat_hash_map<std::string, int32_t> strings_;
  std::set<std::string, std::less<>> own_keys_;  // all other keys are literals
  std::map<std::pair<std::string_view, std::string>, int32_t> string_attributes_;
  std::map<std::pair<std::string_view, int64_t>, int32_t> int_attributes_;
  absl::flat_hash_map<std::pair<std::string, int32_t>, int32_t> mappings_;  // by id and file name
  absl::flat_hash_map<std::array<int32_t, 3>, int32_t> functions_;          // by name, system name and file
  struct LocationKey {
    FrameKind kind;
    int32_t mapping;
    uint64_t address;
    std::vector<int32_t> lines;  // functions and lines alternate
    friend bool operator==(const LocationKey&, const LocationKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const LocationKey& k) {
      return H::combine(std::move(h), k.kind, k.mapping, k.address, k.lines);
    }
  };
  absl::flat_hash_map<LocationKey, int32_t> locations_;
  absl::flat_hash_map<std::vector<int32_t>, int32_t> stacks_;
  std::unique_ptr<LogSize> log_size_;                 // null: bytes() counts the request itself
  absl::flat_hash_map<std::string, int32_t> links_;   // by trace and span
  std::vector<std::vector<int32_t>> attribute_sets_;  // [0]: none
  std::map<std::vector<int32_t>, int32_t> attribute_set_ids_;
  std::map<std::pair<AttributesIndex, Ending>, AttributesIndex> ending_sets_;
  std::vector<SampleTypeInfo> types_;
  std::vector<std::unique_ptr<OpenResource>> resources_;
  std::map<Attributes, int32_t> resource_ids_;
};

}  // namespace tributary::otlp
