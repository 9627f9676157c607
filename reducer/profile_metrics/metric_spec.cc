#include "reducer/profile_metrics/metric_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr size_t kShownBytes = 40;  // of a wrong part of the text, in a message

struct LabelWord {
  std::string_view word;
  MetricLabel::Of of;
  std::string_view attribute;  // normalized
};
constexpr auto kLabelWords = std::to_array<LabelWord>({
    {"service", MetricLabel::Of::kAttribute, "service_name"},
    {"executable", MetricLabel::Of::kAttribute, "process_executable_name"},
    {"language", MetricLabel::Of::kLanguage, ""},
    {"function", MetricLabel::Of::kFunction, ""},
    {"library", MetricLabel::Of::kLibrary, ""},
});
constexpr std::string_view kLabelForms =
    "service, executable, language, function, library, or the name of an attribute such as k8s.pod.name";

// The names of the reducer's own metrics begin with these words.
constexpr auto kOwnPrefixes = std::to_array<std::string_view>({"tributary_", "process_"});

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

std::string Shown(std::string_view text) {
  return EscapeForDisplay(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "..." : "");
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsMetricName(std::string_view name) {
  return !name.empty() && !IsDigit(name[0]) &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

bool IsAttributeName(std::string_view name) {
  return !name.empty() && name.size() <= MetricSpec::kNameBytesMax && IsLetter(name[0]) &&
         std::ranges::all_of(
             name, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-' || c == '/'; });
}

bool IsOfThread(std::string_view label) {
  const std::optional<Label> known = FindLabel(label);
  return known && IsThreadLabel(*known);
}

// Parses a specification from left to right. Positions in messages count bytes from 0.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<MetricSpec> Parse() {
    if (text_.size() > MetricSpec::kTextBytesMax) {
      return Invalid(fmt::format("the text is longer than {} bytes", MetricSpec::kTextBytesMax));
    }
    while (position_ < text_.size()) {
      RETURN_IF_ERROR(ParsePart());
      if (position_ < text_.size() && text_[position_] != ',') {
        return Invalid(fmt::format("expected ',' at byte {}, found '{}'", position_, Shown(text_.substr(position_))));
      }
      ++position_;
    }
    if (spec_.name.empty()) {
      return Invalid(fmt::format("'{}' has no name; write name=NAME,selector={{…}},by=LABEL", Shown(text_)));
    }
    if (!spec_.name.ends_with("_total")) {
      return Invalid(fmt::format("the name {} must end with _total, as the name of each counter does", spec_.name));
    }
    if (spec_.type.name.empty()) spec_.type = InfoOf(*FindSampleType(SampleType::kCpu));
    return std::move(spec_);
  }

 private:
  absl::Status ParsePart() {
    const size_t end = text_.find_first_of("=,", position_);
    const std::string_view word = text_.substr(position_, end == text_.npos ? end : end - position_);
    if (end == text_.npos || text_[end] == ',') {
      if (key_ != "by") {
        return Invalid(fmt::format("expected KEY=VALUE at byte {}, found '{}'", position_, Shown(word)));
      }
      return AddLabel(Take());
    }
    key_ = word;
    const size_t key_at = position_;
    position_ = end + 1;
    if (key_ == "by") return AddLabel(Take());
    const bool is_new = std::ranges::find(seen_, key_) == seen_.end();
    if (!is_new) return Invalid(fmt::format("the key {} occurs again at byte {}", key_, key_at));
    seen_.push_back(key_);
    if (key_ == "name") return SetName(Take());
    if (key_ == "selector") return SetSelector();
    if (key_ == "type") return SetType(Take());
    return Invalid(
        fmt::format("unknown key '{}' at byte {}; the keys are name, selector, by and type", Shown(key_), key_at));
  }

  struct Value {
    std::string_view text;
    size_t at;
  };
  // Takes the text up to the next comma.
  Value Take() {
    const size_t begin = position_;
    position_ = std::min(text_.find(',', begin), text_.size());
    return {text_.substr(begin, position_ - begin), begin};
  }

  absl::Status SetName(Value value) {
    if (!IsMetricName(value.text)) {
      return Invalid(
          fmt::format("'{}' at byte {} is not the name of a metric: use letters, digits and '_', and begin "
                      "with a letter or '_'",
                      Shown(value.text), value.at));
    }
    if (value.text.size() > MetricSpec::kNameBytesMax) {
      return Invalid(fmt::format("the name at byte {} is longer than {} bytes", value.at, MetricSpec::kNameBytesMax));
    }
    for (const std::string_view prefix : kOwnPrefixes) {
      if (!value.text.starts_with(prefix)) continue;
      return Invalid(
          fmt::format("the name {} at byte {} begins with {}, as the reducer's own metrics do: choose "
                      "another one, such as profile_cpu_seconds_total",
                      Shown(value.text), value.at, prefix));
    }
    spec_.name = value.text;
    return absl::OkStatus();
  }

  // The selector has commas of its own, so it ends at its closing brace.
  absl::Status SetSelector() {
    const size_t begin = position_;
    bool quoted = false;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (quoted && c == '\\') {
        ++position_;
      } else if (c == '"') {
        quoted = !quoted;
      } else if (c == '}' && !quoted) {
        break;
      }
    }
    position_ = std::min(position_ + 1, text_.size());
    const std::string context = fmt::format("the selector that begins at byte {}", begin);
    absl::StatusOr<Selector> selector = Selector::Parse(text_.substr(begin, position_ - begin));
    RETURN_IF_ERROR(WithContext(selector.status(), context));
    for (const Selector::Matcher& matcher : selector->matchers()) {
      if (!IsOfThread(matcher.label)) continue;
      return Invalid(fmt::format("{}: the label '{}' at its byte {} belongs to threads, and metrics count processes",
                                 context, matcher.label, matcher.position));
    }
    spec_.selector = *std::move(selector);
    return absl::OkStatus();
  }

  absl::Status SetType(Value value) {
    const auto built_in = std::ranges::find(kSampleTypes, value.text, &SampleTypeRow::name);
    if (built_in != kSampleTypes.end()) {
      spec_.type = InfoOf(*built_in);
    } else {
      const size_t colon = value.text.find(':');
      spec_.type.name = value.text.substr(0, colon);
      if (colon != value.text.npos) spec_.type.unit = value.text.substr(colon + 1);
    }
    if (IsSampleTypeText(spec_.type.name) && IsSampleTypeText(spec_.type.unit) && !spec_.type.is_gauge()) {
      return absl::OkStatus();
    }
    return Invalid(fmt::format("'{}' at byte {} is not a type of samples: write cpu, off_cpu, or NAME:UNIT",
                               Shown(value.text), value.at));
  }

  absl::Status AddLabel(Value value) {
    if (spec_.by.size() == MetricSpec::kLabelsMax) {
      return Invalid(fmt::format("by= has more than {} labels: '{}' at byte {} is one too many", MetricSpec::kLabelsMax,
                                 Shown(value.text), value.at));
    }
    MetricLabel label;
    const auto word = std::ranges::find(kLabelWords, value.text, &LabelWord::word);
    if (word != kLabelWords.end()) {
      label = {.of = word->of, .name = std::string(word->word), .attribute = std::string(word->attribute)};
    } else if (!IsAttributeName(value.text)) {
      return Invalid(fmt::format("'{}' at byte {} is not a label for by=; allowed are {}", Shown(value.text), value.at,
                                 kLabelForms));
    } else if (IsOfThread(value.text)) {
      return Invalid(
          fmt::format("the label {} at byte {} belongs to threads, and metrics count processes; allowed are "
                      "{}",
                      Shown(value.text), value.at, kLabelForms));
    } else {
      label.name = label.attribute = NormalizeLabel(value.text);
    }
    if (std::ranges::find(spec_.by, label.name, &MetricLabel::name) != spec_.by.end()) {
      return Invalid(fmt::format("by= has the label {} again at byte {}", label.name, value.at));
    }
    spec_.by.push_back(std::move(label));
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t position_ = 0;
  std::string_view key_;                // of the part before
  std::vector<std::string_view> seen_;  // keys other than by
  MetricSpec spec_;
};

}  // namespace

bool MetricSpec::uses_frames() const { return std::ranges::any_of(by, &MetricLabel::is_of_frame); }

bool MetricSpec::uses(MetricLabel::Of of) const { return std::ranges::find(by, of, &MetricLabel::of) != by.end(); }

absl::StatusOr<MetricSpec> MetricSpec::Parse(std::string_view text) { return Parser(text).Parse(); }

absl::StatusOr<std::vector<MetricSpec>> ParseMetricSpecs(const std::vector<std::string>& texts) {
  if (texts.size() > MetricSpec::kMetricsMax) {
    return Invalid(
        fmt::format("there are {} metrics, and at most {} are allowed", texts.size(), MetricSpec::kMetricsMax));
  }
  std::vector<MetricSpec> specs;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(MetricSpec spec, MetricSpec::Parse(text));
    if (std::ranges::find(specs, spec.name, &MetricSpec::name) != specs.end()) {
      return Invalid(fmt::format("two metrics have the name {}: give each metric its own name", spec.name));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<std::string> FindUnknownAttributes(const std::vector<MetricSpec>& specs, const AttributeNames& names) {
  std::vector<std::string> sentences;
  const auto check = [&](const MetricSpec& spec, const std::string& attribute) {
    if (attribute.empty() || names.Knows(attribute)) return;
    sentences.push_back(
        fmt::format("no process has the attribute {} of the metric {} yet: check its spelling, the nearest one is {}",
                    EscapeForDisplay(attribute), spec.name, EscapeForDisplay(names.Nearest(attribute))));
  };
  for (const MetricSpec& spec : specs) {
    for (const Selector::Matcher& matcher : spec.selector.matchers()) check(spec, matcher.label);
    for (const MetricLabel& label : spec.by) check(spec, label.attribute);
  }
  return sentences;
}

std::vector<std::string> FindUnknownTypes(const std::vector<MetricSpec>& specs, const std::set<SampleTypeInfo>& types) {
  std::vector<std::string> sentences;
  for (const MetricSpec& spec : specs) {
    const SampleTypeInfo& type = spec.type;
    const bool is_built_in = std::ranges::find(kSampleTypes, type.name, &SampleTypeRow::name) != kSampleTypes.end();
    if (is_built_in || types.contains(type)) continue;
    const std::string name = EscapeForDisplay(type.name + ":" + type.unit);
    sentences.push_back(
        types.contains({type.name, type.unit, Aggregation::kLast})
            ? fmt::format("the type {} of the metric {} is a gauge, and gauges make no metrics: read it with "
                          "/api/v1/timeline?type={}, or let the program itself offer the gauge to Prometheus",
                          name, spec.name, name)
            : fmt::format("no program has sent samples of the type {} of the metric {} yet: check its spelling", name,
                          spec.name));
  }
  return sentences;
}

}  // namespace tributary
