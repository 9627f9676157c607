#pragma once

#include <array>
#include <cstdint>
#include <deque>
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
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "otlp/generation.h"
#include "otlp/profiles_request.h"
#include "otlp/request_indices.h"
#include "otlp/sample_table.h"
#include "profile/attributes.h"
#include "profile/executable_id.h"
#include "profile/model.h"

namespace opentelemetry::proto::profiles::v1development {
class ProfilesDictionary;
}  // namespace opentelemetry::proto::profiles::v1development

namespace tributary::otlp {

class BuiltRequest;
class LogSize;

// The thread of a sample. Empty or unset fields get no attribute in the request. The caller owns the texts.
struct ThreadInfo {
  std::string_view thread_name;
  std::string_view executable_name;
  std::string_view executable_path;
  std::optional<Pid> pid;
  std::optional<Tid> tid;
};

// The attributes of a resource in protobuf's wire format.
struct EncodedResource {
  std::string bytes;
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
    bool exact_bytes = true;                      // if possible: bytes() is close to the size, and not only a bound
    bool aggregated = false;                      // a value for each stack and thread, without time stamps
    // false: a linkage name that differs from the name, for example because it is mangled, is left out.
    bool linkage_names = true;
    // For the code that adds stacks: leave out the frames of an interpreter around the frames of the code that it runs.
    bool fold_interpreters = false;
    size_t bytes_soft = 2'500'000;
    size_t bytes_hard = 3'700'000;
    std::string scope_name = "tributary";
    std::string scope_version;
  };
  // `samples`: the table of an earlier request, for its memory.
  explicit ProfilesBuilder(Options options, SampleTable samples = {});
  ~ProfilesBuilder();
  ProfilesBuilder(const ProfilesBuilder&) = delete;
  ProfilesBuilder& operator=(const ProfilesBuilder&) = delete;

  // Returns the ResourceProfiles with these attributes. Adds it if it is new. The attributes keep their order.
  // profile/attribute_types.h defines the types of their values. Attributes with an empty value are left out.
  ResourceIndex AddResource(const Attributes& attributes);
  // The same in two steps, for a resource that is needed in several requests.
  static EncodedResource EncodeResource(const Attributes& attributes);
  ResourceIndex AddEncodedResource(const EncodedResource& resource);
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

  // Return the request. Afterwards, only ReleaseTable may be called.
  BuiltRequest FinishBuilt();
  ProfilesRequestPtr Finish();
  SampleTable ReleaseTable();  // for the next request

 private:
  using Dictionary = ::opentelemetry::proto::profiles::v1development::ProfilesDictionary;
  using Shape = SampleTable::Shape;

  bool NoRoomFor(std::string_view text);
  // In 1.7, each attribute contains its key, and each profile contains its stacks.
  bool is_1_7() const { return options_.generation == Generation::k1_7; }
  size_t KeyBytes(std::string_view key) const { return is_1_7() ? key.size() : 0; }
  int32_t String(std::string_view text);
  int32_t StringAttribute(std::string_view key, std::string_view value);
  int32_t IntAttribute(std::string_view key, int64_t value);
  AttributesIndex AttributeSet(std::vector<int32_t> set);
  template <typename Message>
  void CountEntry(const Message& entry, size_t bound);
  int32_t FindProfile(const SampleTable::ProfileKey& key);
  void Append(const SampleInfo& sample, Shape shape, int64_t period, int64_t value, uint32_t times);
  void CountSample(const SampleTable::Entry& entry, Shape shape, bool is_new, int64_t value, uint32_t times);

  const Options options_;
  const bool is_exact_;  // bytes() is close to the size; otherwise, entries count with an upper bound for all layouts
  ProfilesRequestPtr request_;  // has no samples until the end
  Dictionary* dictionary_;      // of *request_
  size_t bytes_;
  uint64_t sample_count_ = 0;
  uint64_t dropped_strings_ = 0;

  absl::flat_hash_map<std::string_view, int32_t> strings_;  // the texts are in *dictionary_
  std::set<std::string, std::less<>> own_keys_;             // all other keys are literals
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, int32_t>
      string_attributes_;  // values: as strings_
  absl::flat_hash_map<std::pair<std::string_view, int64_t>, int32_t> int_attributes_;
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
  std::vector<std::string> encoded_sets_;             // the same, as the field attribute_indices of a sample
  absl::flat_hash_map<std::vector<int32_t>, int32_t> attribute_set_ids_;
  absl::flat_hash_map<std::pair<AttributesIndex, Ending>, AttributesIndex> ending_sets_;
  std::vector<SampleTypeInfo> types_;
  std::deque<std::string> resources_;                            // encoded
  absl::flat_hash_map<std::string_view, int32_t> resource_ids_;  // the texts are in resources_
  SampleTable samples_;
  absl::flat_hash_set<std::pair<int32_t, int32_t>> profile_stacks_;  // only for 1.7, which has them in each profile
};

}  // namespace tributary::otlp
