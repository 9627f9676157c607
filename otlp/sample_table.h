#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "otlp/request_indices.h"
#include "otlp/wire_buffer.h"

namespace tributary::otlp {

// The samples of a request of profiles (protocol 1.10 and 1.11): keeps them in a compact form, and then writes all
// ResourceProfiles in protobuf's wire format. Equal samples are merged: they have the same profile, stack, attributes
// and link. Not thread-safe.
class SampleTable {
 public:
  // What a sample has: time stamps, one value without time stamps, or a value for each time stamp.
  enum class Shape { kTimestamps, kAggregate, kValues };
  struct ProfileKey {
    ResourceIndex resource;
    TypeIndex type;
    Shape shape;
    int64_t period;
    friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const ProfileKey& k) {
      return H::combine(std::move(h), k.resource.value, k.type.value, k.shape, k.period);
    }
  };
  // Indices of strings.
  struct ProfileTypes {
    int32_t type = 0, unit = 0;
    int32_t period_type = 0, period_unit = 0;  // 0: the profile has no period
  };
  // Returns the number of a profile, and true if it is new. Then SetTypes must be called.
  std::pair<int32_t, bool> FindProfile(const ProfileKey& key);
  void SetTypes(int32_t profile, const ProfileTypes& types) { profiles_[Place(profile)].types = types; }

  struct Entry {
    int32_t profile;
    StackIndex stack;
    AttributesIndex attributes;
    LinkIndex link;
  };
  // Adds `times` samples with this time. `value`: of kAggregate and kValues. Returns true if the entry is new.
  bool Add(const Entry& entry, uint64_t time_ns, int64_t value, uint32_t times);

  // Returns a sample's set of attributes, given as indices of the table of attributes, in the wire format.
  static std::string EncodeSet(std::span<const int32_t> set);
  // Return upper bounds of the bytes that Write writes for an entry without its points, and for a point. They are at
  // most a few bytes too high. `set`: the entry's encoded set of attributes.
  static size_t EntryBytes(const Entry& entry, std::string_view set);
  static size_t PointBytes(Shape shape, int64_t value);

  // The texts that all ResourceProfiles need, in the wire format.
  struct Encoded {
    const std::deque<std::string>& resources;     // by ResourceIndex: Resource
    std::span<const std::string> attribute_sets;  // by AttributesIndex: of EncodeSet
    std::string_view scope;                       // InstrumentationScope
  };
  struct Written {
    std::string resource_profiles;  // fields of the request
    std::vector<std::pair<size_t, uint64_t>>
        profile_ids;       // the place of each profile's id, and how many samples it has
    uint64_t content = 0;  // as ContentOf(request)
  };
  // Writes the ResourceProfiles that have samples. Each profile has an id of 16 zero bytes. `bytes`: about how many
  // bytes they have.
  Written Write(const Encoded& encoded, size_t bytes) const;
  // Makes the table empty. It keeps most of its memory for the next request.
  void Clear();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static size_t Place(int32_t index) { return static_cast<size_t>(index); }
  struct Profile {
    ProfileKey key;
    ProfileTypes types;
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    uint32_t first_row = kNone, last_row = kNone;
  };
  struct Row {
    int32_t stack, attributes, link;
    uint32_t next = kNone;  // row of the profile
    int64_t value = 0;      // of kAggregate
    uint32_t first_point = kNone, last_point = kNone, points = 0;
  };
  struct Point {
    uint64_t time_ns;
    int64_t value;
    uint32_t next;  // point of the row
  };
  void AddPoint(uint64_t time_ns, int64_t value, Row* row);
  uint64_t WriteRow(const Profile& profile, const Row& row, std::string_view attributes, WireBuffer* out,
                    WireBuffer* digest) const;
  uint64_t WriteRows(const Profile& profile, const Encoded& encoded, WireBuffer* out, WireBuffer* digest) const;

  std::vector<Profile> profiles_;
  int32_t last_profile_ = -1;  // the result of FindProfile: the next sample often has the same profile
  std::vector<Row> rows_;
  std::vector<Point> points_;
  absl::flat_hash_map<ProfileKey, int32_t> profile_numbers_;
  absl::flat_hash_map<std::array<int32_t, 4>, uint32_t> row_numbers_;  // by profile, stack, attributes and link
};

}  // namespace tributary::otlp
