#include "reducer/metadata/service_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.h"

namespace tributary {
namespace {

// The precision of saved times. The times of a running service change all the time.
constexpr int64_t kSavedNs = 10 * kNsPerMinute;

void Raise(UnixNs& time, UnixNs to, bool* is_dirty) {
  if (to <= time) return;
  *is_dirty |= to.value / kSavedNs != time.value / kSavedNs;
  time = to;
}

int64_t NumberOf(const Attributes& state, std::string_view key) {
  std::string_view text = FindAttribute(state, key);
  return TakeNumber<int64_t>(text).value_or(0);
}

}  // namespace

std::vector<ServiceTracker::Change> ServiceTracker::See(std::vector<ServiceSighting> sightings, UnixNs now) {
  std::stable_sort(sightings.begin(), sightings.end(),
                   [](const ServiceSighting& a, const ServiceSighting& b) { return a.began < b.began; });
  if (first_pass_.value == 0) first_pass_ = now;
  std::vector<Change> changes;
  for (const ServiceSighting& sighting : sightings) {
    if (std::optional<Change> change = Judge(sighting, now)) changes.push_back(*std::move(change));
  }
  return changes;
}

std::optional<ServiceTracker::Change> ServiceTracker::Judge(const ServiceSighting& sighting, UnixNs now) {
  auto found = programs_.find(sighting.program);
  if (found == programs_.end()) {
    if (programs_.size() >= kProgramsMax) {
      ++turned_away_;
      return std::nullopt;
    }
    found = programs_.emplace(sighting.program, Program{.first_seen = now, .versions = {}, .changed = {}}).first;
  }
  Program& program = found->second;
  std::vector<Version>& versions = program.versions;
  const auto known = std::find_if(versions.begin(), versions.end(), [&](const Version& version) {
    return !version.identity.DiffersFrom(sighting.version);
  });
  const bool is_new = known == versions.end();
  const size_t index = static_cast<size_t>(known - versions.begin());
  if (is_new) {
    if (versions.size() >= kVersionsMax) {
      // Never the current version.
      versions.erase(std::min_element(versions.begin() + 1, versions.end(),
                                      [](const Version& a, const Version& b) { return a.seen < b.seen; }));
    }
    versions.push_back({sighting.version, {}, now, {}});
    program.is_dirty = true;
  }
  Version& version = is_new ? versions.back() : versions[index];
  Raise(version.seen, now, &program.is_dirty);
  version.identity.Fill(sighting.version);
  Version& current = versions.front();
  if (&version == &current || sighting.began <= current.newest) {
    Raise(version.newest, sighting.began, &program.is_dirty);
    return std::nullopt;
  }
  if (is_new) {
    version.newest = sighting.began;
    if (program.first_seen == now || sighting.began < program.first_seen) {
      std::swap(versions.front(), versions.back());
      return std::nullopt;
    }
    return SetCurrent(sighting.program, program, versions.size() - 1, sighting.began);
  }
  if (version.back_since <= current.newest) version.back_since = sighting.began;
  if (std::max(current.seen, first_pass_).value > now.value - kGoneNs) return std::nullopt;
  version.newest = sighting.began;
  return SetCurrent(sighting.program, program, index, version.back_since);
}

std::optional<ServiceTracker::Change> ServiceTracker::SetCurrent(const ServiceProgram& name, Program& program,
                                                                 size_t version, UnixNs at) {
  std::swap(program.versions.front(), program.versions[version]);
  for (Version& each : program.versions) each.back_since = UnixNs{};
  const bool is_calm = at.value - program.changed.value >= kCalmNs;
  program.streak = is_calm ? 1 : std::min(program.streak + 1, kStreakMax + 1);
  program.changed = at;
  program.is_dirty = true;
  if (program.streak > kStreakMax) {
    ++muted_;
    return std::nullopt;
  }
  return Change{name, program.versions.front().identity, program.versions[version].identity, at};
}

std::vector<ServiceProgram> ServiceTracker::Forget(UnixNs now, int64_t keep_ns) {
  // After a restart, the running programs must be seen first.
  const bool is_crowded = programs_.size() >= kProgramsMax && now.value - first_pass_.value >= kCrowdedKeepNs;
  const UnixNs seen{now.value - (is_crowded ? std::min(keep_ns, kCrowdedKeepNs) : keep_ns)};
  std::vector<ServiceProgram> forgotten;
  absl::erase_if(programs_, [&](const auto& entry) {
    const std::vector<Version>& versions = entry.second.versions;
    const bool is_old =
        std::all_of(versions.begin(), versions.end(), [&](const Version& version) { return version.seen < seen; });
    if (is_old) forgotten.push_back(entry.first);
    return is_old;
  });
  return forgotten;
}

std::string ServiceTracker::Encode(const Program& program) {
  Attributes state;
  const auto put = [&state](std::string_view key, int64_t number) {
    if (number != 0) SetAttribute(state, key, fmt::format("{}", number));
  };
  put("met", program.first_seen.value);
  put("streak", program.streak);
  put("changed", program.changed.value);
  for (size_t i = 0; i < program.versions.size(); ++i) {
    const Version& version = program.versions[i];
    for (const auto& [key, text] :
         {std::pair("version", &version.identity.version), std::pair("image", &version.identity.image),
          std::pair("digest", &version.identity.digest), std::pair("build_id", &version.identity.build_id)}) {
      if (!text->empty()) SetAttribute(state, fmt::format("{}.{}", i, key), *text);
    }
    put(fmt::format("{}.newest", i), version.newest.value);
    put(fmt::format("{}.seen", i), version.seen.value);
    put(fmt::format("{}.back_since", i), version.back_since.value);
  }
  return EncodeAttributes(state, SIZE_MAX, nullptr);
}

void ServiceTracker::Restore(const ServiceProgram& name, std::string_view text) {
  if (programs_.size() >= kProgramsMax) return;
  const Attributes state = DecodeAttributes(text);
  Program program{.first_seen = UnixNs{NumberOf(state, "met")},
                  .versions = {},
                  .streak = static_cast<int>(std::clamp<int64_t>(NumberOf(state, "streak"), 0, kStreakMax + 1)),
                  .changed = UnixNs{NumberOf(state, "changed")},
                  .is_dirty = false};
  for (size_t i = 0; i < kVersionsMax; ++i) {
    const auto find = [&](std::string_view key) { return FindAttribute(state, fmt::format("{}.{}", i, key)); };
    Version version{.identity = {.version = std::string(find("version")),
                                 .image = std::string(find("image")),
                                 .digest = std::string(find("digest")),
                                 .build_id = std::string(find("build_id"))},
                    .newest = UnixNs{NumberOf(state, fmt::format("{}.newest", i))},
                    .seen = UnixNs{NumberOf(state, fmt::format("{}.seen", i))},
                    .back_since = UnixNs{NumberOf(state, fmt::format("{}.back_since", i))}};
    if (version.identity.empty()) break;
    program.versions.push_back(std::move(version));
  }
  if (!program.versions.empty()) programs_.insert_or_assign(name, std::move(program));
}

}  // namespace tributary
