#include "elf/unwind_rule.h"

#include <fmt/format.h>

namespace tributary {
namespace {

std::string Saved(trib_saved saved, int32_t offset) {
  switch (saved) {
    case TRIB_SAVED_SAME:
      return "same";
    case TRIB_SAVED_CFA:
      return fmt::format("cfa{:+}", offset);
    case TRIB_SAVED_FP:
      return fmt::format("fp{:+}", offset);
    case TRIB_SAVED_LOST:
      break;
  }
  return "lost";
}

std::string Cfa(const UnwindRule& rule) {
  switch (rule.kind) {
    case TRIB_RULE_SP:
      return fmt::format("sp{:+}", rule.cfa_offset);
    case TRIB_RULE_FP:
      return fmt::format("fp{:+}", rule.cfa_offset);
    case TRIB_RULE_SECOND:
      return fmt::format("second{:+}", rule.cfa_offset);
    case TRIB_RULE_DEREF_SP:
      return fmt::format("*(sp{:+}){:+}", rule.last, rule.cfa_offset);
    case TRIB_RULE_DEREF_FP:
      return fmt::format("*(fp{:+}){:+}", rule.last, rule.cfa_offset);
    case TRIB_RULE_REGISTER:
      return fmt::format("r{}{:+}", rule.last, rule.cfa_offset);
    case TRIB_RULE_RETURN_REGISTER:
      return fmt::format("sp{:+} ra=r{}", rule.cfa_offset, rule.last);
    default:
      return {};
  }
}

}  // namespace

std::string FormatRule(uint64_t bits) {
  UnwindRule rule = DecodeRule(bits);
  switch (rule.kind) {
    case TRIB_RULE_NONE:
      return "none";
    case TRIB_RULE_PLT:
      return "plt";
    case TRIB_RULE_SIGNAL:
      return "signal";
    case TRIB_RULE_END:
      return "end";
    case TRIB_RULE_SP:
    case TRIB_RULE_FP:
    case TRIB_RULE_SECOND:
      return fmt::format("{} fp={} second={}", Cfa(rule), Saved(rule.frame_pointer, rule.frame_pointer_offset),
                         Saved(rule.second, rule.last));
    case TRIB_RULE_DEREF_SP:
    case TRIB_RULE_DEREF_FP:
    case TRIB_RULE_REGISTER:
    case TRIB_RULE_RETURN_REGISTER:
      return fmt::format("{} fp={} second=lost", Cfa(rule), Saved(rule.frame_pointer, rule.frame_pointer_offset));
    default:
      return "bad";
  }
}

}  // namespace tributary
