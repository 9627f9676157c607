#pragma once

#include <span>
#include <string>
#include <string_view>

// What kernel-collector does with each component and key of the OpenTelemetry eBPF profiler's Collector distribution.
// table.cc has the two tables. config.h applies them, and docs/migrate.md describes them for users.

namespace tributary {

enum class Section { kReceivers, kProcessors, kExporters, kExtensions };
std::string_view SectionName(Section section);  // "receivers"

// A component that the distribution contains. All others are errors.
struct Component {
  Section section;
  std::string_view type;  // "otlp" also stands for "otlp/NAME"
  // Whether kKeys lists all its keys, so that other keys are errors. If not, other keys are not read.
  bool checks_keys;
  // The warning if a pipeline uses the component. Empty: the component has its full effect. An exporter of exporter.h
  // gives a warning only if kernel-collector does not take its place. For one that sends, destination.h makes it.
  std::string_view warning;
  // The name in newer releases of the Collector, if `type` is the older one. Both mean the same.
  std::string_view new_type = "";
};

enum class KeyType { kBool, kNumber, kWhole, kDuration, kText, kTexts, kMap, kAny };

enum class KeyAction {
  kSet,        // `argument` is our option, which gets the value
  kDebug,      // true means --log-level=debug
  kLanguages,  // the names of the map's members are tracers
  kAttribute,  // the key and the value become an attribute of all samples
  kActions,    // the `attributes` of the processor `resource`
  kExporter,   // exporter.h reads the value. `warning`: the setting has no equal here
  kOff,        // `argument` is the value that means "off": any other value gives `warning`
  kReducer,    // `argument` is the option of the reducer that matches: the component's warning names it
  kRules,      // a list of {key or key_regex, tag_name, from}: the component's warning has the reducer's `argument` for
               // each
  kAlways,     // kernel-collector always does this, or its warning for the component says why the key has no effect
};

struct Key {
  Section section;
  std::string_view component;  // its `type`, or a name for several components
  // In lower case, without "_": "SamplesPerSecond" and "samples_per_second" are the same. A dot leads into a map.
  std::string_view name;
  KeyType type;
  KeyAction action;
  std::string_view argument = "";
  std::string_view warning = "";

  bool IsOf(const Component& of) const;
};

const Component* FindComponent(Section section, std::string_view type);
std::string ComponentTypes(Section section);  // "profiling, customprofilesreceiver, …"

const Key* FindKey(const Component& component, std::string_view name);
std::string KeyName(std::string_view spelled);  // as in Key::name

std::span<const Component> Components();
std::span<const Key> Keys();

}  // namespace tributary
