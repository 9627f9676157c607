#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hex.h"
#include "otlp/json.h"
#include "otlp/request_identity.h"
#include "otlp/transcoder.h"
#include "schemas/otlp/profiles_1_7.pb.h"
#include "schemas/otlp/profiles_1_8.pb.h"
#include "schemas/otlp/profiles_1_9.pb.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "test/otlp/random_samples_testing.h"

namespace tributary::otlp {
namespace {

namespace common = ::opentelemetry::proto::common::v1;
namespace newest = ::opentelemetry::proto::profiles::v1development;

// The differences between the generations, for a reader that is a template.
const auto& SamplesOf(const newest::Profile& profile) { return profile.samples(); }
const auto& SamplesOf(const v1_9::Profile& profile) { return profile.samples(); }
const auto& SamplesOf(const v1_8::Profile& profile) { return profile.sample(); }
const auto& SamplesOf(const v1_7::Profile& profile) { return profile.sample(); }

template <typename Profile>
const auto& TypeOf(const Profile& profile) {
  return profile.sample_type();
}
const auto& TypeOf(const v1_7::Profile& profile) {
  EXPECT_EQ(profile.sample_type_size(), 1);
  return profile.sample_type(0);
}

template <typename Profile>
std::string TimeOf(const Profile& profile) {
  return fmt::format("{}+{}", profile.time_unix_nano(), profile.duration_nano());
}
std::string TimeOf(const v1_7::Profile& profile) {
  return fmt::format("{}+{}", profile.time_nanos(), profile.duration_nanos());
}

template <typename Location>
const auto& LinesOf(const Location& location) {
  return location.line();
}
const auto& LinesOf(const newest::Location& location) { return location.lines(); }

template <typename Sample>
const auto& ValuesOf(const Sample& sample) {
  return sample.values();
}
const auto& ValuesOf(const v1_7::Sample& sample) {
  EXPECT_EQ(sample.value_size(), 1);
  return sample.value();
}

template <typename Dictionary, typename Profile, typename Sample>
std::vector<int> StackOf(const Dictionary& tables, const Profile& /*profile*/, const Sample& sample) {
  const auto& stack = tables.stack_table(sample.stack_index()).location_indices();
  return {stack.begin(), stack.end()};
}
std::vector<int> StackOf(const v1_7::ProfilesDictionary& /*tables*/, const v1_7::Profile& profile,
                         const v1_7::Sample& sample) {
  const auto begin = profile.location_indices().begin() + sample.locations_start_index();
  EXPECT_LE(sample.locations_start_index() + sample.locations_length(), profile.location_indices_size());
  return {begin, begin + sample.locations_length()};
}

template <typename Dictionary>
const std::string& KeyOf(const Dictionary& tables, const newest::KeyValueAndUnit& attribute) {
  return tables.string_table(attribute.key_strindex());
}
const std::string& KeyOf(const v1_7::ProfilesDictionary& /*tables*/, const common::KeyValue& attribute) {
  return attribute.key();
}

// Describes the points of a request: one for each time stamp, or for each sum without time stamps.
template <typename Request>
class Reader {
 public:
  explicit Reader(const Request& request) : tables_(request.dictionary()) {
    for (const auto& resource : request.resource_profiles()) {
      const std::string of_resource = ToJson(resource.resource());
      for (const auto& scope : resource.scope_profiles()) {
        for (const auto& profile : scope.profiles()) Read(of_resource + ToJson(scope.scope()), profile);
      }
    }
    std::sort(points_.begin(), points_.end());
  }
  const std::vector<std::string>& points() const { return points_; }

 private:
  const std::string& String(int index) const { return tables_.string_table(index); }

  template <typename Indices>
  std::string Attributes(const Indices& indices) const {
    std::string out;
    for (const int index : indices) {
      const auto& attribute = tables_.attribute_table(index);
      out += fmt::format("[{}={}]", KeyOf(tables_, attribute), ToJson(attribute.value()));
    }
    return out;
  }

  std::string Frame(int index) const {
    const auto& location = tables_.location_table(index);
    const auto& mapping = tables_.mapping_table(location.mapping_index());
    std::string out = fmt::format("\n {}{} {}..{} {} at {}", String(mapping.filename_strindex()),
                                  Attributes(mapping.attribute_indices()), mapping.memory_start(),
                                  mapping.memory_limit(), Attributes(location.attribute_indices()), location.address());
    for (const auto& line : LinesOf(location)) {
      const auto& function = tables_.function_table(line.function_index());
      out += fmt::format(" {}|{}|{}:{}", String(function.name_strindex()), String(function.system_name_strindex()),
                         String(function.filename_strindex()), line.line());
    }
    return out;
  }

  template <typename Profile>
  void Read(const std::string& origin, const Profile& profile) {
    const auto& type = TypeOf(profile);
    const std::string about =
        fmt::format("{} {} {} {} {} {} {} {}", origin, String(type.type_strindex()), String(type.unit_strindex()),
                    String(profile.period_type().type_strindex()), String(profile.period_type().unit_strindex()),
                    profile.period(), TimeOf(profile),
                    ToHex(std::span<const uint8_t>(reinterpret_cast<const uint8_t*>(profile.profile_id().data()),
                                                   profile.profile_id().size())));
    for (const auto& sample : SamplesOf(profile)) {
      const auto& link = tables_.link_table(sample.link_index());
      std::string text = about + Attributes(sample.attribute_indices()) + ToJson(link);
      for (const int index : StackOf(tables_, profile, sample)) text += Frame(index);
      AddPoints(text, ValuesOf(sample), sample.timestamps_unix_nano());
    }
  }

  template <typename Values, typename Times>
  void AddPoints(const std::string& text, const Values& values, const Times& times) {
    if (times.empty()) {
      ASSERT_EQ(values.size(), 1);
      points_.push_back(fmt::format("{}\n= {}", text, values[0]));
      return;
    }
    // In 1.7, the only value is the number of the time stamps.
    const bool has_each = values.size() == times.size();
    ASSERT_TRUE(has_each || values.empty() || values[0] == times.size());
    for (int i = 0; i < times.size(); ++i) {
      points_.push_back(fmt::format("{}\n{} = {}", text, times[i], has_each ? values[i] : 1));
    }
  }

  const std::remove_reference_t<decltype(std::declval<Request>().dictionary())>& tables_;
  std::vector<std::string> points_;
};

constexpr size_t kJsonFactor = 4;  // as in reducer/export/exporter.cc

template <typename Request>
void Check(Generation generation, uint64_t seed, bool aggregated) {
  World world(seed);
  ProfilesBuilder builder({.generation = generation, .aggregated = aggregated, .scope_version = "0"});
  std::vector<ProfilesBuilder::SampleInfo> samples;
  for (uint64_t n = 1 + world.Draw(200); n > 0; --n) {
    // Equal samples are merged.
    const bool repeats = !samples.empty() && world.Draw(3) == 0;
    samples.push_back(repeats ? samples[world.Draw(samples.size())] : world.Sample(builder));
    samples.back().time.value += static_cast<int64_t>(world.Draw(1000));
    builder.AddSample(samples.back());
  }
  const size_t bound = builder.bytes();
  const ProfilesRequestPtr request = builder.Finish();
  SetProfileIds({.sender = "s", .session = {1}, .first = seed}, request.get());
  const std::string bytes = Transcode(*request, generation)->SerializeAsString();
  Request old;
  ASSERT_TRUE(old.ParseFromString(bytes));
  EXPECT_EQ(Reader(old).points(), Reader(*request).points()) << "seed " << seed;
  EXPECT_LE(bytes.size(), bound) << "seed " << seed;
  EXPECT_LE(ToJson(old).size(), kJsonFactor * bound) << "seed " << seed;
}

TEST(GenerationsProperty, OlderGenerationsHaveTheSameSamplesAndKeepTheirBound) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const bool aggregated = seed % 4 == 0;
    Check<v1_7::ExportProfilesServiceRequest>(Generation::k1_7, seed, aggregated);
    Check<v1_8::ExportProfilesServiceRequest>(Generation::k1_8, seed, aggregated);
    Check<v1_9::ExportProfilesServiceRequest>(Generation::k1_9, seed, aggregated);
  }
}

}  // namespace
}  // namespace tributary::otlp
