#include "kernel-collector/distribution/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/ascii_case.h"
#include "base/log.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/types.h"
#include "kernel-collector/distribution/otlp_receiver.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/yaml_values.h"
#include "otlp/place.h"
#include "otlp/text_options.h"
#include "otlp/transport.h"

namespace tributary {
namespace {

using Kind = Exporter::Kind;

constexpr std::pair<std::string_view, Kind> kKinds[] = {{"otlp", Kind::kGrpc},
                                                        {"otlphttp", Kind::kHttp},
                                                        {"customprofilesexporter", Kind::kConsole},
                                                        {"debug", Kind::kDebug}};
constexpr std::string_view kLayout = "layout=collector";
constexpr std::string_view kHttpPath = otlp::kProfilesSignal.http_path;
constexpr int64_t kTimeoutMinNs = kNsPerMs, kTimeoutMaxNs = 10 * kNsPerMinute;  // as of the reducer's exporters
constexpr size_t kLostMax = 32;

// Removes the scheme from the start of `*text`.
bool TakeScheme(std::string_view scheme, std::string_view* text) {
  if (!EqualsIgnoringCase(text->substr(0, scheme.size()), scheme)) return false;
  text->remove_prefix(scheme.size());
  return true;
}

class ExporterReader {
 public:
  ExporterReader(const Component& component, const YamlNode& node) : component_(component), node_(node) {
    out_.kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& row) {
                  return row.first == component.type;
                })->second;
    out_.path = fmt::format("{}.{}", SectionName(component.section), node.key);
    out_.line = node.key_line;
    out_.column = node.key_column;
    out_.advice = component.warning;
  }

  absl::StatusOr<Exporter> Read() {
    if (out_.sends()) {
      RETURN_IF_ERROR(ReadEndpoint());
      ReadTlsFiles();
      ReadSettings();
      ReadHeaders();
      ReadLost(node_, "");
    } else {
      RETURN_IF_ERROR(ReadConsole());
    }
    return std::move(out_);
  }

 private:
  // Returns the value of a key in any of its spellings, or nullptr. "tls.cafile" is the key `cafile` of the map `tls`.
  static const YamlNode* Find(const YamlNode& map, std::string_view name) {
    const size_t dot = std::min(name.find('.'), name.size());
    for (const YamlNode& child : map.children) {
      if (KeyName(child.key) != name.substr(0, dot) || child.IsNull()) continue;
      return dot == name.size() ? &child : Find(child, name.substr(dot + 1));
    }
    return nullptr;
  }
  std::string Text(std::string_view name) const {
    const YamlNode* node = Find(node_, name);
    return node == nullptr ? "" : std::string(TextOf(*node).value_or(""));
  }
  bool IsTrue(std::string_view name) const {
    const YamlNode* node = Find(node_, name);
    return node != nullptr && ParseYamlBool(*node) == true;
  }

  void SetProblem(const YamlNode& place, std::string_view message) {
    if (out_.problem.ok())
      out_.problem = WrongValue(place, fmt::format("{}: {}", EscapeForDisplay(out_.path), message));
  }
  void Lose(const YamlNode& place, std::string_view key, std::string_view why) {
    if (out_.lost.size() == kLostMax) return;
    out_.lost.push_back(
        fmt::format("line {}: {}: {}", place.key_line, EscapeForDisplay(out_.path + "." + std::string(key)), why));
  }

  absl::Status ReadEndpoint() {
    const YamlNode* of_profiles = out_.kind == Kind::kHttp ? Find(node_, "profilesendpoint") : nullptr;
    const YamlNode* endpoint = of_profiles != nullptr ? of_profiles : Find(node_, "endpoint");
    if (endpoint == nullptr) {
      out_.problem =
          Error(absl::StatusCode::kInvalidArgument, fmt::format("line {}, column {}: {}: the endpoint is missing",
                                                                out_.line, out_.column, EscapeForDisplay(out_.path)));
      return absl::OkStatus();
    }
    const std::string text(TextOf(*endpoint).value_or(""));
    if (HasUser(text)) {
      return WrongValue(*endpoint, fmt::format("{} must not contain a user or a password: use headers",
                                               EscapeForDisplay(endpoint->key)));
    }
    const absl::Status status =
        out_.kind == Kind::kGrpc ? ReadGrpcEndpoint(text) : ReadUrl(text, of_profiles != nullptr);
    if (!status.ok()) {
      SetProblem(*endpoint, fmt::format("{} {}", EscapeForDisplay(endpoint->key), ToStd(status.message())));
    }
    // The address may have a form that only a Collector knows.
    out_.advice += export_.empty()
                       ? "; start the reducer with --export, with the address of this receiver (docs/export.md)"
                       : fmt::format("; start the reducer with {} to send them on", export_);
    return absl::OkStatus();
  }

  absl::Status ReadGrpcEndpoint(std::string_view text) {
    // As in the Collector, `http://` does not switch TLS off, and neither does `insecure` next to authorities.
    const bool has_authorities = !Text("tls.cafile").empty() || !Text("tls.capem").empty();
    out_.tls = !IsTrue("tls.insecure") || has_authorities;
    if (TakeScheme("https://", &text)) {
      out_.tls = true;
    } else if (!TakeScheme("http://", &text)) {
      TakeScheme("dns:///", &text);
    }
    if (text.ends_with('/')) text.remove_suffix(1);
    const absl::StatusOr<otlp::Place> place = otlp::ParsePlace(text, "443");  // gRPC's default
    if (!place.ok() || !place->path.empty()) {
      return Error(absl::StatusCode::kInvalidArgument, "must be HOST:PORT, with the port of an OTLP receiver");
    }
    out_.host = place->target;
    export_ = fmt::format("--export {}://{}", out_.tls ? "otlps" : "otlp", out_.host);
    return absl::OkStatus();
  }

  // `has_path`: nothing is added to the path, as for a profiles_endpoint.
  absl::Status ReadUrl(std::string_view text, bool has_path) {
    const bool tls = TakeScheme("https://", &text);
    if (!tls && !TakeScheme("http://", &text)) {
      return Error(absl::StatusCode::kInvalidArgument, "must be a URL with http or https");
    }
    // The ports of HTTP, as in the Collector. OTLP's own port must be in the URL.
    absl::StatusOr<otlp::Place> place = otlp::ParsePlace(text, tls ? "443" : "80");
    if (!place.ok() || text.find('?') != text.npos) {
      return Error(absl::StatusCode::kInvalidArgument, "must be http://HOST[:PORT][/PATH] or https://…");
    }
    if (has_path && place->path.size() < 2) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("must have a path, such as {}: the Collector sends to exactly this URL", kHttpPath));
    }
    if (!has_path) {
      while (place->path.ends_with('/')) place->path.pop_back();
      place->path += kHttpPath;
    }
    out_.host = fmt::format("{}://{}{}", tls ? "https" : "http", place->target, place->path);
    export_ = fmt::format("--export {}://{}{}", tls ? "otlp+https" : "otlp+http", place->target, place->path);
    return absl::OkStatus();
  }

  void ReadTlsFiles() {
    const bool has_tls = out_.tls || out_.host.starts_with("https://");
    for (const auto& [name, file] :
         {std::pair{"tls.cafile", &out_.ca}, {"tls.certfile", &out_.cert}, {"tls.keyfile", &out_.key}}) {
      const YamlNode* node = Find(node_, name);
      if (node == nullptr || Text(name).empty()) continue;
      if (has_tls) {
        *file = Text(name);
      } else {
        Lose(*node, "tls." + node->key, "is not used, because the connection has no TLS");
      }
    }
  }

  void ReadSettings() {
    auto& parameters = out_.settings.parameters;
    if (const YamlNode* timeout = Find(node_, "timeout"); timeout != nullptr) {
      const int64_t ns = ParseGoDurationNs(timeout->text).value_or(0);
      parameters["timeout"] =  // 0: no limit
          DurationText(ns == 0 ? kTimeoutMaxNs : std::clamp(ns, kTimeoutMinNs, kTimeoutMaxNs));
    }
    if (const YamlNode* compression = Find(node_, "compression"); compression != nullptr) {
      const bool is_none = compression->text == "none" || compression->text.empty();
      parameters["compression"] = is_none ? "none" : "gzip";
      if (!is_none && compression->text != "gzip") Lose(*compression, compression->key, "requests are gzip instead");
    }
    if (out_.kind != Kind::kHttp) return;
    const std::string encoding = Text("encoding");
    parameters["encoding"] = encoding == "json" ? "json" : "protobuf";
    if (!encoding.empty() && encoding != "json" && encoding != "proto") {
      SetProblem(*Find(node_, "encoding"), "encoding must be proto or json");
    }
  }

  // {NAME: VALUE}, and in newer releases also [{name: NAME, value: VALUE}].
  void ReadHeaders() {
    const YamlNode* headers = Find(node_, "headers");
    if (headers == nullptr) return;
    for (const YamlNode& header : headers->children) {
      const YamlNode* name = headers->IsMap() ? nullptr : header.Find("name");
      const YamlNode* value = headers->IsMap() ? &header : header.Find("value");
      const std::optional<std::string_view> text =
          value == nullptr || value->IsNull() ? std::optional<std::string_view>("") : TextOf(*value);
      if (!text || (!headers->IsMap() && name == nullptr)) {
        return SetProblem(header, "headers must be a map of texts");
      }
      const absl::Status added =
          otlp::AddHeader(headers->IsMap() ? header.key : name->text, *text, &out_.settings.headers);
      if (!added.ok()) return SetProblem(header, ToStd(added.message()));
    }
    if (!headers->IsMap() && !headers->IsSequence()) SetProblem(*headers, "headers must be a map of texts");
  }

  // Names the settings without an equal, also those that this release does not know.
  void ReadLost(const YamlNode& map, const std::string& prefix) {
    for (const YamlNode& child : map.children) {
      if (child.IsNull()) continue;
      const std::string name = prefix + KeyName(child.key);
      const Key* key = FindKey(component_, name);
      const std::string shown = prefix + child.key;
      if (name == "tls" && child.IsMap()) {
        ReadLost(child, "tls.");
      } else if (key == nullptr || !key->warning.empty()) {
        if (ParseYamlBool(child) != false) Lose(child, shown, key == nullptr ? "has no effect here" : key->warning);
      }
    }
  }

  absl::Status ReadConsole() {
    out_.console = kLayout;
    if (out_.kind == Kind::kDebug) return absl::OkStatus();
    otlp::TextOptions checked;
    bool has_ignore = false;
    for (const YamlNode& child : node_.children) {
      if (child.IsNull()) continue;
      std::string value = child.text;
      if (child.IsSequence()) value = Joined(child);
      if (ParseYamlBool(child) && child.IsScalar()) value = *ParseYamlBool(child) ? "true" : "false";
      const std::string_view name = SwitchOf(KeyName(child.key));
      const std::string_view wrong = otlp::SetTextOption(name, value, &checked);
      if (!wrong.empty()) return WrongValue(child, fmt::format("{}: {}", EscapeForDisplay(out_.path), wrong));
      has_ignore |= name == kIgnore;
      out_.console +=
          fmt::format("&{}={}", name, PercentEncoded(value, [](char c) { return IsUrlUnreserved(c) || c == ','; }));
    }
    if (!has_ignore) out_.console += fmt::format("&{}=true", kIgnore);  // the exporter's default
    return absl::OkStatus();
  }

  static std::string Joined(const YamlNode& list) {
    std::string out;
    for (const YamlNode& item : list.children) out += (out.empty() ? "" : ",") + item.text;
    return out;
  }

  // Returns the name of the switch whose KeyName is `name`.
  static std::string_view SwitchOf(std::string_view name) {
    for (const std::string_view of_switch : otlp::TextOptionNames()) {
      if (KeyName(of_switch) == name) return of_switch;
    }
    return "";
  }

  static constexpr std::string_view kIgnore = "ignore_profiles_without_container_id";

  const Component& component_;
  const YamlNode& node_;
  Exporter out_;
  std::string export_;  // the reducer's option for the same receiver
};

}  // namespace

bool IsExporter(const Component& component) {
  return component.section == Section::kExporters &&
         std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const auto& row) { return row.first == component.type; });
}

absl::StatusOr<Exporter> ReadExporter(const Component& component, const YamlNode& node) {
  return ExporterReader(component, node).Read();
}

}  // namespace tributary
