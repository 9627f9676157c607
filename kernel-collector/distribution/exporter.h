#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/yaml_document.h"
#include "kernel-collector/distribution/table.h"
#include "otlp/headers.h"

namespace tributary {

// The settings of a receiver of OTLP that are not options of kernel-collector.
struct ReceiverSettings {
  std::map<std::string, std::string, std::less<>> parameters;  // compression, timeout, encoding: as in otlp::Receiver
  otlp::Headers headers;
};

// An exporter of the Collector whose place kernel-collector can take: it sends profiles to a receiver of OTLP, or
// prints them.
struct Exporter {
  enum class Kind { kGrpc, kHttp, kConsole, kDebug };
  Kind kind = Kind::kGrpc;
  std::string path;               // "exporters.otlp/pyroscope"
  int line = 0, column = 0;       // of its name
  absl::Status problem;           // why kernel-collector cannot take its place, with line and column
  std::string host;               // the value of --intake-host
  bool tls = false;               // of kGrpc
  std::string ca, cert, key;      // files; "" = none
  ReceiverSettings settings;      // of kGrpc and kHttp
  std::string console;            // the value of --console; of kConsole and kDebug
  std::vector<std::string> lost;  // warnings if kernel-collector takes its place: the settings without an equal
  // The warning if it does not: the reducer's options that send or print. Of kGrpc and kHttp, it is the second half of
  // a sentence, which begins with "; ". "" = none.
  std::string advice;

  bool sends() const { return kind == Kind::kGrpc || kind == Kind::kHttp; }
};

// Returns true if kernel-collector can take the place of such components.
bool IsExporter(const Component& component);

// Reads an exporter. The caller has checked the types of its keys. Returns InvalidArgument, with line and column, for
// values that are always wrong: a user or a password in an endpoint, which the message does not contain, and a switch
// of the console that does not exist.
absl::StatusOr<Exporter> ReadExporter(const Component& component, const YamlNode& node);

}  // namespace tributary
