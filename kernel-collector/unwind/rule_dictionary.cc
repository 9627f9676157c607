#include "kernel-collector/unwind/rule_dictionary.h"

#include "bpf/include/unwind.h"

namespace tributary {

RuleDictionary::RuleDictionary(std::span<uint64_t> rules, Metrics& metrics)
    : rules_(rules),
      refused_(metrics.AddCounter("tributary_collector_unwind_rules_refused_total",
                                  "Unwind rules that were refused, because the dictionary of rules was full; stacks "
                                  "end at code that needs such a rule")) {
  Number(TRIB_RULE_NONE);
  Number(TRIB_RULE_BAD);
}

uint16_t RuleDictionary::Number(uint64_t rule) {
  if (auto it = numbers_.find(rule); it != numbers_.end()) return it->second;
  if (size_ == rules_.size()) {
    refused_.Add();
    return kBadNumber;
  }
  uint16_t number = static_cast<uint16_t>(size_++);
  rules_[number] = rule;
  numbers_.emplace(rule, number);
  return number;
}

}  // namespace tributary
