#include "kernel-collector/unwind/rule_dictionary.h"

#include <span>

#include "base/status.h"
#include "bpf/include/unwind.h"

namespace tributary {

RuleDictionary::RuleDictionary(UnwindMaps& maps, Metrics& metrics)
    : maps_(maps),
      refused_(metrics.AddCounter("tributary_collector_unwind_rules_refused_total",
                                  "Unwind rules that were refused, because the dictionary of rules was full; stacks "
                                  "end at code that needs such a rule")) {
  TRIBUTARY_CHECK(Number(TRIB_RULE_NONE) == 0 && Number(TRIB_RULE_BAD) == kBadNumber && size_ == 2);
}

std::optional<uint16_t> RuleDictionary::Number(uint64_t rule) {
  if (auto it = numbers_.find(rule); it != numbers_.end()) return it->second;
  const std::span<uint64_t> rules = maps_.rules();
  if (size_ == rules.size()) {
    refused_.Add();
    return kBadNumber;
  }
  if (!maps_.Access(std::as_bytes(rules.subspan(size_, 1)))) return std::nullopt;
  uint16_t number = static_cast<uint16_t>(size_++);
  rules[number] = rule;
  numbers_.emplace(rule, number);
  return number;
}

}  // namespace tributary
