#include "kernel-collector/distribution/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii_case.h"

namespace tributary {
namespace {

using enum Section;
using enum KeyType;
using enum KeyAction;

// For exporters whose place kernel-collector does not take.
constexpr std::string_view kNoPrinting =
    "not used, because the samples go elsewhere; --console prints them too, unless they go to a reducer, which prints "
    "them with --export 'console?layout=collector'";
// Names both exporters for OTLP: otlp and otlphttp.
constexpr std::string_view kOtlp = "otlp and otlphttp";
constexpr std::string_view kRetries =
    "samples are sent again until the receiver accepts them; --intake-memory-max limits how many wait";
// For keys without a counterpart.
constexpr std::string_view kOwnChoice = "kernel-collector has no such setting and chooses by itself";

constexpr Component kComponents[] = {
    {kReceivers, "profiling", true, ""},
    {kReceivers, "customprofilesreceiver", true,
     "this example receiver makes empty profiles; kernel-collector makes none"},
    {kReceivers, "profilingextension", true, "samples at calls of kernel functions do not exist yet"},
    {kReceivers, "nop", false, ""},

    {kProcessors, "customprofilesprocessor", true, ""},
    // Written below `processors` on the distribution's own page.
    {kProcessors, "customprofilesexporter", true, "read as customprofilesprocessor, which has the key foo"},
    {kProcessors, "resource", true, ""},
    {kProcessors, "resourcedetection", false,
     "kernel-collector always finds the attributes of host and cloud; --cloud-metadata selects the cloud",
     "resource_detection"},
    {kProcessors, "k8sattributes", true,
     "attributes of pods come from the reducer; run one k8s-collector in each cluster, which sends them to the "
     "reducer",
     "k8s_attributes"},
    {kProcessors, "transform", false,
     "statements that change profiles do not exist; --resource-attribute sets an attribute of all samples"},
    {kProcessors, "batch", false, "--batch-interval sets how often samples are sent"},
    {kProcessors, "memory_limiter", false, "--intake-memory-max limits the memory of samples that wait"},

    {kExporters, "customprofilesexporter", true, kNoPrinting},
    {kExporters, "debug", false, kNoPrinting},
    {kExporters, "nop", false, ""},
    {kExporters, "otlp", false, "", "otlp_grpc"},
    {kExporters, "otlphttp", false, "", "otlp_http"},
    {kExporters, "file", false, "kernel-collector writes no profiles to files; the reducer stores them"},
    {kExporters, "httprest", false,
     "the reducer's HTTP API has the functions of containers and processes (docs/api.md)"},

    {kExtensions, "pprof", false, "kernel-collector has no pprof server; it samples itself, too"},
    {kExtensions, "opamp", false, "no server manages kernel-collector; change its options, and send it SIGHUP"},
    {kExtensions, "health_check", false, "--metrics-listen serves /healthz, and --health-check checks it"},
};

constexpr Key kKeys[] = {
    // Samples
    {kReceivers, "profiling", "samplespersecond", kWhole, kSet, "sample-rate"},
    {kReceivers, "profiling", "tracers", kText, kSet, "tracers"},
    {kReceivers, "profiling", "interpreters", kMap, kLanguages, "tracers"},
    {kReceivers, "profiling", "includeenvvars", kText, kSet, "resource-env"},
    {kReceivers, "profiling", "reporterinterval", kDuration, kSet, "batch-interval"},
    {kReceivers, "profiling", "verbosemode", kBool, kDebug, "log-level"},
    // What kernel-collector always does
    {kReceivers, "profiling", "bpfverifierloglevel", kNumber, kAlways},  // prints the verifier's log if it refuses
    {kReceivers, "profiling", "nokernelversioncheck", kBool, kAlways},   // checks what the kernel can do instead
    {kReceivers, "profiling", "kernelversioncheck", kBool, kAlways},
    {kReceivers, "profiling", "probabilisticinterval", kDuration, kAlways},  // belongs to probabilisticthreshold
    // What does not exist yet
    {kReceivers, "profiling", "offcputhreshold", kNumber, kOff, "0", "off-CPU samples do not exist yet"},
    {kReceivers, "profiling", "senderrorframes", kBool, kOff, "false",
     "incomplete stacks have no error frames; their attribute tributary.stack.ending is the reason"},
    {kReceivers, "profiling", "sendidleframes", kBool, kOff, "false", "idle CPUs are not sampled"},
    {kReceivers, "profiling", "probabilisticthreshold", kNumber, kOff, "100",
     "sampling is not switched off for a part of the time; --cpu-budget limits its cost"},
    {kReceivers, "profiling", "loadprobe", kBool, kOff, "false", "samples at probes do not exist yet"},
    {kReceivers, "profiling", "probes", kAny, kOff, "", "samples at probes do not exist yet"},
    {kReceivers, "profiling", "probelinks", kAny, kOff, "", "samples at probes do not exist yet"},
    {kReceivers, "profiling", "uprobelinks", kAny, kOff, "", "samples at probes do not exist yet"},
    {kReceivers, "profiling", "filterminprocessage", kDuration, kOff, "0s", "young processes are sampled, too"},
    {kReceivers, "profiling", "pincpuids", kAny, kOff, "", "all CPUs are sampled"},
    {kReceivers, "profiling", "obiprocessctx", kBool, kOff, "false", "spans of OBI do not exist yet"},
    {kReceivers, "profiling", "pidnamespacetranslation", kBool, kOff, "false", "process ids are those of the host"},
    // Limits and intervals
    {kReceivers, "profiling", "mapscalefactor", kNumber, kOff, "0", "--unwind-memory limits the kernel memory"},
    {kReceivers, "profiling", "golabelsmapscalefactor", kNumber, kOff, "0", "labels of Go do not exist yet"},
    {kReceivers, "profiling", "framecachesize", kNumber, kOff, "", kOwnChoice},
    {kReceivers, "profiling", "reporterjitter", kNumber, kOff, "", kOwnChoice},
    {kReceivers, "profiling", "monitorinterval", kDuration, kOff, "", kOwnChoice},
    {kReceivers, "profiling", "clocksyncinterval", kDuration, kOff, "", kOwnChoice},
    {kReceivers, "profiling", "maxgrpcretries", kNumber, kOff, "",
     "samples are sent again until a reducer has stored them; --spool-dir keeps them on disk"},
    {kReceivers, "profiling", "maxrpcmsgsize", kNumber, kOff, "", kOwnChoice},
    {kReceivers, "profiling", "bpffsroot", kText, kOff, "/sys/fs/bpf/", "the BPF file system is below --sys-root"},
    {kReceivers, "profiling", "errormode", kText, kOff, "propagate", kOwnChoice},

    {kReceivers, "customprofilesreceiver", "reportinterval", kDuration, kAlways},
    {kReceivers, "customprofilesreceiver", "foo", kText, kAlways},
    {kReceivers, "profilingextension", "attachkernelsymbols", kTexts, kAlways},

    {kProcessors, "customprofilesprocessor", "foo", kText, kAttribute, "resource-attribute"},
    {kProcessors, "customprofilesexporter", "foo", kText, kAttribute, "resource-attribute"},
    {kProcessors, "resource", "attributes", kAny, kActions, "resource-attribute"},

    {kProcessors, "k8sattributes", "waitformetadata", kBool, kReducer, "--metadata-wait"},
    {kProcessors, "k8sattributes", "waitformetadatatimeout", kDuration, kReducer, "--metadata-wait"},
    {kProcessors, "k8sattributes", "extract.labels", kAny, kRules, "--k8s-label"},
    {kProcessors, "k8sattributes", "extract.annotations", kAny, kRules, "--k8s-annotation"},
    {kProcessors, "k8sattributes", "extract.metadata", kTexts, kAlways},  // the reducer has all of them
    {kProcessors, "k8sattributes", "extract.otelannotations", kBool, kAlways},
    {kProcessors, "k8sattributes", "extract.deploymentnamefromreplicaset", kBool, kAlways},
    {kProcessors, "k8sattributes", "extract", kMap, kAlways},
    {kProcessors, "k8sattributes", "authtype", kText, kAlways},  // k8s-collector takes a kubeconfig or its own account
    {kProcessors, "k8sattributes", "context", kText, kAlways},   // of the kubeconfig
    {kProcessors, "k8sattributes", "passthrough", kBool, kAlways},
    {kProcessors, "k8sattributes", "filter", kAny, kAlways},          // each node sends only its own containers
    {kProcessors, "k8sattributes", "podassociation", kAny, kAlways},  // always by container.id and k8s.pod.uid
    {kProcessors, "k8sattributes", "exclude", kAny, kAlways},

    // Settings of these two exporters that are not in this table have no effect, and give a warning.
    {kExporters, kOtlp, "endpoint", kText, kExporter},
    {kExporters, kOtlp, "headers", kAny, kExporter},
    {kExporters, kOtlp, "compression", kText, kExporter},
    {kExporters, kOtlp, "timeout", kDuration, kExporter},
    {kExporters, kOtlp, "tls", kMap, kAlways},
    {kExporters, kOtlp, "tls.insecure", kBool, kExporter},
    {kExporters, kOtlp, "tls.cafile", kText, kExporter},
    {kExporters, kOtlp, "tls.certfile", kText, kExporter},
    {kExporters, kOtlp, "tls.keyfile", kText, kExporter},
    {kExporters, kOtlp, "tls.insecureskipverify", kBool, kExporter, "", "the receiver's certificate is always checked"},
    {kExporters, kOtlp, "retryonfailure", kAny, kExporter, "", kRetries},
    {kExporters, kOtlp, "sendingqueue", kAny, kExporter, "", kRetries},
    {kExporters, "otlphttp", "profilesendpoint", kText, kExporter},
    {kExporters, "otlphttp", "tracesendpoint", kText, kAlways},
    {kExporters, "otlphttp", "metricsendpoint", kText, kAlways},
    {kExporters, "otlphttp", "logsendpoint", kText, kAlways},
    {kExporters, "otlphttp", "encoding", kText, kExporter},

    {kExporters, "customprofilesexporter", "ignoreprofileswithoutcontainerid", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportresourceattributes", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportprofileattributes", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportsampleattributes", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportstackframes", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportstackframetypes", kTexts, kExporter},
    {kExporters, "customprofilesexporter", "exportfunctionfile", kBool, kExporter},
    {kExporters, "customprofilesexporter", "exportsampletypes", kTexts, kExporter},
};

}  // namespace

std::string_view SectionName(Section section) {
  constexpr std::string_view kNames[] = {"receivers", "processors", "exporters", "extensions"};
  return kNames[static_cast<size_t>(section)];
}

const Component* FindComponent(Section section, std::string_view type) {
  const auto it = std::find_if(std::begin(kComponents), std::end(kComponents), [&](const Component& c) {
    return c.section == section && (c.type == type || (!c.new_type.empty() && c.new_type == type));
  });
  return it == std::end(kComponents) ? nullptr : it;
}

std::string ComponentTypes(Section section) {
  std::string types;
  for (const Component& component : kComponents) {
    if (component.section != section) continue;
    types += fmt::format("{}{}", types.empty() ? "" : ", ", component.type);
    if (!component.new_type.empty()) types += fmt::format(", {}", component.new_type);
  }
  return types;
}

bool Key::IsOf(const Component& of) const {
  const bool is_otlp = of.section == Section::kExporters && (of.type == "otlp" || of.type == "otlphttp");
  return section == of.section && (component == of.type || (component == kOtlp && is_otlp));
}

const Key* FindKey(const Component& component, std::string_view name) {
  const auto it = std::find_if(std::begin(kKeys), std::end(kKeys),
                               [&](const Key& key) { return key.IsOf(component) && key.name == name; });
  return it == std::end(kKeys) ? nullptr : it;
}

std::string KeyName(std::string_view spelled) {
  std::string name = LowerCase(spelled);
  std::erase(name, '_');
  return name;
}

std::span<const Component> Components() { return kComponents; }
std::span<const Key> Keys() { return kKeys; }

}  // namespace tributary
