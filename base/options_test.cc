#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "base/docs/document.h"
#include "base/parse.h"
#include "base/yaml_document.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Parsed {
  Options options{"reducer", "Test."};
  std::string listen;
  int64_t rate = 0;
  bool live = false;
  std::vector<std::string> exports;
  std::string token;
  absl::StatusOr<Options::Outcome> outcome = Options::Outcome::kRun;

  Parsed(std::vector<const char*> args, const Options::Environment& environment = {}) {
    options.Add({.name = "intake-listen", .help = "address", .flag_aliases = {"p"}, .env_aliases = {"OLD_LISTEN"}},
                &listen, "127.0.0.1:8000");
    options.Add({.name = "sample-rate", .help = "rate"}, &rate, 19, 1, 10000);
    options.Add({.name = "live", .help = "live"}, &live, true);
    options.Add({.name = "export", .help = "where to"}, &exports);
    options.Add({.name = "token", .help = "token", .secret = true}, &token, "");
    args.insert(args.begin(), "reducer");
    outcome = options.Parse(static_cast<int>(args.size()), args.data(), environment);
  }
  std::string error() const { return std::string(outcome.status().message()); }
};

std::string WriteFile(const std::string& text) {
  std::string path =
      testing::TempDir() + "/options_test_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << text;
  return path;
}

TEST(Options, DefaultsHoldWhenNothingIsGiven) {
  Parsed p({});
  ASSERT_TRUE(p.outcome.ok());
  EXPECT_EQ(p.listen, "127.0.0.1:8000");
  EXPECT_EQ(p.rate, 19);
  EXPECT_TRUE(p.live);
}

TEST(Options, FlagOutranksEnvironmentOutranksFile) {
  std::string file = WriteFile("sample_rate: 1\nintake_listen: file:1\nlive: false\n");
  std::string flag = "--config=" + file;
  Parsed p({flag.c_str(), "--sample-rate", "3"}, {{"EBPF_NET_SAMPLE_RATE", "2"}, {"EBPF_NET_INTAKE_LISTEN", "env:1"}});
  ASSERT_TRUE(p.outcome.ok()) << p.error();
  EXPECT_EQ(p.rate, 3);
  EXPECT_EQ(p.listen, "env:1");
  EXPECT_FALSE(p.live);
}

TEST(Options, EmptyVariablesCountAsUnset) {
  const std::string file = WriteFile("intake_listen: file:1\nexport: [a]\n");
  Parsed p({}, {{"EBPF_NET_CONFIG", file},
                {"EBPF_NET_SAMPLE_RATE", ""},
                {"EBPF_NET_LIVE", ""},
                {"EBPF_NET_EXPORT", ""},
                {"EBPF_NET_INTAKE_LISTEN", ""},
                {"OLD_LISTEN", "alias:1"}});
  ASSERT_TRUE(p.outcome.ok()) << p.error();
  EXPECT_EQ(p.rate, 19);
  EXPECT_TRUE(p.live);
  EXPECT_THAT(p.exports, ElementsAre("a"));
  EXPECT_EQ(p.listen, "alias:1");
  EXPECT_TRUE(Parsed({}, {{"EBPF_NET_CONFIG", ""}}).outcome.ok());
}

TEST(Options, ParsesTheCommonLogOptions) {
  Parsed p({"--log-format=json", "--debug", "--log-console", "--log-file-path", "/l"});
  ASSERT_TRUE(p.outcome.ok()) << p.error();
  const LogSetup log = p.options.log_setup();
  EXPECT_EQ(log.format, LogFormat::kJson);
  EXPECT_EQ(log.options.level, LogLevel::kDebug);
  EXPECT_TRUE(log.options.console);
  EXPECT_EQ(log.options.file_path, "/l");
  EXPECT_THAT(Parsed({"--log-format=xml"}).error(), HasSubstr("must be text, logfmt or json"));
}

TEST(Options, ValuesReturnTheCurrentOptions) {
  Parsed p({"--export=a", "--export=b", "--token=secret"}, {{"EBPF_NET_SAMPLE_RATE", "7"}});
  ASSERT_TRUE(p.outcome.ok()) << p.error();
  std::map<std::string, std::string> texts;
  for (const OptionValue& value : p.options.values()) texts[value.name] = value.text;
  EXPECT_EQ(texts["export"], "a,b");
  EXPECT_EQ(texts["sample-rate"], "7");
  EXPECT_EQ(texts["intake-listen"], "127.0.0.1:8000");
  EXPECT_FALSE(texts.contains("config"));
}

TEST(Options, FileMapsPrefixTheirOptions) {
  std::string flag = "--config=" + WriteFile("intake: {listen: 'file:1'}\nsample:\n  rate: 7\nexport: [a]\n");
  Parsed p({flag.c_str()});
  ASSERT_TRUE(p.outcome.ok()) << p.error();
  EXPECT_EQ(p.listen, "file:1");
  EXPECT_EQ(p.rate, 7);
  flag = "--config=" + WriteFile("intake: {listne: x}\n");
  EXPECT_THAT(Parsed({flag.c_str()}).error(), HasSubstr("unknown key 'intake_listne'; did you mean 'intake_listen'?"));
  flag = "--config=" + WriteFile("intake: {listen: {listen: x}}\n");
  EXPECT_THAT(Parsed({flag.c_str()}).error(), HasSubstr("intake_listen: must be one value"));
  flag = "--config=" + WriteFile("a: {b: {c: x}}\n");
  EXPECT_THAT(Parsed({flag.c_str()}).error(), HasSubstr("unknown key 'a_b'"));
}

TEST(Options, AStrongerListReplacesAWeakerOne) {
  std::string file = WriteFile("export: [a, b]\n");
  std::string flag = "--config=" + file;
  EXPECT_THAT(Parsed({flag.c_str()}).exports, ElementsAre("a", "b"));
  EXPECT_THAT(Parsed({flag.c_str()}, {{"EBPF_NET_EXPORT", "c,d"}}).exports, ElementsAre("c", "d"));
  EXPECT_THAT(Parsed({flag.c_str(), "--export", "e", "--export=f"}, {{"EBPF_NET_EXPORT", "c"}}).exports,
              ElementsAre("e", "f"));
}

TEST(Options, AliasesAreTheSameOption) {
  EXPECT_EQ(Parsed({"-p", "x:1"}).listen, "x:1");
  EXPECT_EQ(Parsed({}, {{"OLD_LISTEN", "y:1"}}).listen, "y:1");
  EXPECT_EQ(Parsed({}, {{"OLD_LISTEN", "y:1"}, {"EBPF_NET_INTAKE_LISTEN", "z:1"}}).listen, "z:1");
}

TEST(Options, OneDashIsEnough) {
  EXPECT_EQ(Parsed({"-intake-listen=x:1"}).listen, "x:1");
  EXPECT_EQ(Parsed({"-intake-listen", "x:1"}).listen, "x:1");
  EXPECT_FALSE(Parsed({"-live=false"}).live);
  EXPECT_EQ(Parsed({"-debug"}).options.log_setup().options.level, LogLevel::kDebug);
  EXPECT_FALSE(Parsed({"-no-log-console"}).options.log_setup().options.console);
  EXPECT_EQ(Parsed({"-sample-rat=1"}).error(), "unknown option --sample-rat; did you mean --sample-rate?");
  EXPECT_THAT(Parsed({"-tokn=geheim"}).error(), Not(HasSubstr("geheim")));
  EXPECT_FALSE(Parsed({"-"}).outcome.ok());
  const std::string file = WriteFile("sample_rate: 7\n");
  EXPECT_EQ(Parsed({("-config=" + file).c_str()}).rate, 7);
  EXPECT_EQ(Parsed({"-config-file", file.c_str()}).rate, 7);
}

TEST(Options, HostileFilesAreErrorsWithAPlace) {
  auto error = [](const std::string& yaml) {
    const std::string flag = "--config=" + WriteFile(yaml);
    return Parsed({flag.c_str()}).error();
  };
  EXPECT_THAT(error("live: true\nsample_rate: 1\nlive: false\n"),
              HasSubstr("line 3, column 1: the key 'live' stands twice"));
  EXPECT_THAT(error(std::string(50, '[') + std::string(50, ']')),
              HasSubstr("line 1, column 33: maps and lists are nested"));
  EXPECT_THAT(error("live: true\nsample_rates: 1\n"), HasSubstr("line 2, column 1: unknown key 'sample_rates'"));
  EXPECT_THAT(error("- live\n"), HasSubstr("must be a YAML map of options"));
  EXPECT_THAT(error("live: true\nsample_rate: [1]\n"), HasSubstr("line 2, column 14: sample_rate: must be one value"));
  EXPECT_THAT(error("sample:\n  rate: 0\n"), HasSubstr("line 2, column 9: sample_rate = 0: must be a number"));
  EXPECT_THAT(error("export: [a, [b]]\n"), HasSubstr("line 1, column 13: export: must be a list of values"));
}

TEST(Options, ReadsFilesOfAnotherFormat) {
  const std::string file = WriteFile("foreign: 70000\n"), own = file + ".own";
  std::ofstream(own) << "sample_rate: 7\n";
  for (const std::string& path : {file, own}) {
    int64_t rate = 0;
    Options options("x", "Test.");
    options.Add({.name = "sample-rate", .help = "rate"}, &rate, 19, 1, 10000);
    options.SetForeignReader(
        [](std::string_view text) -> absl::StatusOr<std::optional<std::vector<Options::ForeignValue>>> {
          if (text != "foreign: 70000\n") return std::nullopt;
          return std::vector<Options::ForeignValue>{{"sample-rate", "70000", "line 1, column 10: foreign"}};
        });
    const char* args[] = {"x", "--config", path.c_str()};
    const auto outcome = options.Parse(3, args, {});
    if (path == own) {
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_EQ(rate, 7);
    } else {
      EXPECT_THAT(std::string(outcome.status().message()),
                  HasSubstr(": line 1, column 10: foreign = 70000: must be a number from 1 to 10000"));
    }
  }
}

TEST(Options, DerivesValuesThatAllSourcesLeaveOpen) {
  auto rate_with = [](std::vector<const char*> args, const Options::Environment& environment, std::string* error) {
    int64_t rate = 0, other = 0;
    Options options("x", "Test.");
    options.Add({.name = "sample-rate", .help = "rate"}, &rate, 19, 1, 10000);
    options.Add({.name = "other", .help = "other"}, &other, 1, 1, 100'000);
    options.SetDeriver([&]() -> absl::StatusOr<std::vector<Options::ForeignValue>> {
      if (!options.IsGiven("other")) return std::vector<Options::ForeignValue>{};
      return std::vector<Options::ForeignValue>{{"sample-rate", fmt::format("{}", other), "derived from other"}};
    });
    args.insert(args.begin(), "x");
    const auto outcome = options.Parse(static_cast<int>(args.size()), args.data(), environment);
    *error = std::string(outcome.status().message());
    return rate;
  };
  std::string error;
  EXPECT_EQ(rate_with({}, {}, &error), 19);
  EXPECT_EQ(rate_with({"--other=5"}, {}, &error), 5);
  EXPECT_EQ(rate_with({"--other=5", "--sample-rate=6"}, {}, &error), 6);
  EXPECT_EQ(rate_with({"--other=5"}, {{"EBPF_NET_SAMPLE_RATE", "7"}}, &error), 7);
  EXPECT_EQ(error, "");
  const std::string flag = "--config=" + WriteFile("sample_rate: 8\nother: 5\n");
  EXPECT_EQ(rate_with({flag.c_str()}, {}, &error), 8);
  EXPECT_EQ(error, "");
  rate_with({"--other=20000"}, {}, &error);
  EXPECT_EQ(error, "derived from other = 20000: must be a number from 1 to 10000");
}

TEST(Options, BooleansTakeNoValueAndCanBeNegated) {
  EXPECT_FALSE(Parsed({"--no-live"}).live);
  EXPECT_FALSE(Parsed({"--live=no"}).live);
  EXPECT_TRUE(Parsed({"--live"}).live);
}

TEST(Options, AcceptsLogLevelsAsFlags) {
  EXPECT_EQ(Parsed({"--debug"}).options.log_setup().options.level, LogLevel::kDebug);
  EXPECT_EQ(Parsed({"--log-level=error"}).options.log_setup().options.level, LogLevel::kError);
  EXPECT_EQ(Parsed({}).options.log_setup().options.level, LogLevel::kInfo);
  EXPECT_FALSE(Parsed({"--no-console-log"}).options.log_setup().options.console);
}

TEST(Options, UnknownKeysNameTheNearest) {
  EXPECT_THAT(Parsed({"--sample-rat", "3"}).error(), HasSubstr("did you mean --sample-rate?"));
  std::string flag = "--config=" + WriteFile("sample_rates: 1\n");
  EXPECT_THAT(Parsed({flag.c_str()}).error(), HasSubstr("did you mean 'sample_rate'?"));
}

TEST(Options, BadValuesReportSourceAndAllowedValues) {
  EXPECT_THAT(Parsed({"--sample-rate", "0"}).error(), HasSubstr("--sample-rate = 0: must be a number from 1 to 10000"));
  EXPECT_THAT(Parsed({}, {{"EBPF_NET_SAMPLE_RATE", "x\x1b"}}).error(),
              HasSubstr("environment variable EBPF_NET_SAMPLE_RATE = x\\x1b: must be a number"));
  // A value with a user may have a password.
  EXPECT_THAT(Parsed({"--sample-rate=http://user:secret@host"}).error(), HasSubstr("--sample-rate = ***: must be"));
  EXPECT_THAT(Parsed({"--sample-rate"}).error(), HasSubstr("needs a value"));
  EXPECT_THAT(Parsed({"stray"}).error(), HasSubstr("unexpected argument 'stray'"));
  EXPECT_THAT(Parsed({"--config=/nonexistent/x.yaml"}).error(), HasSubstr("cannot be read"));
  EXPECT_THAT(Parsed({"--log-level=loud"}).error(),
              HasSubstr("must be trace, debug, info, warning, error or critical"));
}

TEST(Options, PrintConfigRoundTrips) {
  Parsed p({"--export=a", "--export=b", "--token=geheim", "--intake-listen", "we\"ird: x"});
  std::string yaml = p.options.PrintConfig();
  EXPECT_THAT(yaml, HasSubstr("token: \"***\""));
  EXPECT_EQ(yaml.find("geheim"), std::string::npos);
  std::string flag = "--config=" + WriteFile(yaml);
  Parsed again({flag.c_str()});
  ASSERT_TRUE(again.outcome.ok()) << again.error();
  EXPECT_EQ(again.listen, p.listen);
  EXPECT_EQ(again.exports, p.exports);
}

TEST(Options, HelpListsFlagEnvironmentAndDefault) {
  Parsed p({});
  EXPECT_THAT(p.options.Help(),
              HasSubstr("--sample-rate VALUE\n      rate (default 19)\n      environment EBPF_NET_SAMPLE_RATE"));
}

TEST(Options, DescribesOptionsForDocuments) {
  const docs::Command program = Parsed({}).options.Describe();
  EXPECT_EQ(program.name, "reducer");
  const docs::Option& listen = program.options.front();
  EXPECT_THAT(listen.flags, ElementsAre("--intake-listen", "-p"));
  EXPECT_THAT(listen.environment, ElementsAre("EBPF_NET_INTAKE_LISTEN", "OLD_LISTEN"));
  EXPECT_EQ(listen.key, "intake_listen");
  EXPECT_EQ(listen.default_text, "127.0.0.1:8000");
  EXPECT_EQ(program.options.back().flags[0], "--help");
  EXPECT_EQ(program.options.back().key, "");
}

TEST(Options, PrintDocsIsAFlagOnly) {
  EXPECT_EQ(*Parsed({}, {{"EBPF_NET_PRINT_DOCS", "man"}}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(*Parsed({}, {{"EBPF_NET_HELP", "true"}}).outcome, Options::Outcome::kRun);
  const std::string flag = "--config=" + WriteFile("print_docs: man\n");
  EXPECT_THAT(Parsed({flag.c_str()}).error(), HasSubstr("unknown key 'print_docs'"));
  EXPECT_THAT(Parsed({"--print-docs=html"}).error(), HasSubstr("must be man, bash, zsh, fish or yaml"));
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(*Parsed({"--print-docs=yaml"}).outcome, Options::Outcome::kExit);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("# rate\n#sample_rate: 19\n"));
}

TEST(Options, DistinguishesGivenValuesFromDefaults) {
  Parsed p({"--sample-rate=19"}, {{"OLD_LISTEN", "127.0.0.1:8000"}});
  EXPECT_TRUE(p.options.IsGiven("sample-rate"));
  EXPECT_TRUE(p.options.IsGiven("intake-listen"));
  EXPECT_FALSE(p.options.IsGiven("live"));
  EXPECT_FALSE(p.options.IsGiven("export"));
}

TEST(Options, FlagOnlyOptionsHaveNoVariableOrKey) {
  const std::string path = WriteFile("act: true\n");
  for (std::vector<const char*> args :
       {std::vector<const char*>{"x"}, {"x", "--act"}, {"x", "--config", path.c_str()}}) {
    bool act = false;
    Options options("x", "Test.");
    options.Add({.name = "act", .help = "act", .flag_only = true}, &act, false);
    const bool is_file = args.size() == 3;
    EXPECT_EQ(options.Parse(static_cast<int>(args.size()), args.data(), {{"EBPF_NET_ACT", "1"}}).ok(), !is_file);
    EXPECT_EQ(act, args.size() == 2);
    EXPECT_THAT(options.Help(), Not(HasSubstr("EBPF_NET_ACT")));
    EXPECT_THAT(options.PrintConfig(), Not(HasSubstr("act:")));
  }
}

TEST(ParseListen, TakesAPortAlone) {
  EXPECT_EQ(FormatHostPort(*ParseListen("80")), "127.0.0.1:80");
  EXPECT_EQ(FormatHostPort(*ParseListen("[::1]:80")), "[::1]:80");
  EXPECT_FALSE(ParseListen("").ok());
  EXPECT_FALSE(ParseListen("65536").ok());
}

TEST(ParseHostPort, AcceptsNamesAndBracketedAddresses) {
  EXPECT_EQ(ParseHostPort("localhost:80")->host, "localhost");
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseHostPort(":80")->host, "0.0.0.0");
  EXPECT_EQ(ParseHostPort("a:65535")->port, 65535);
  for (const char* bad : {"a", "a:", "a:x", "a:65536", "::1:80", "[::1:80", "a:80x", ""}) {
    EXPECT_FALSE(ParseHostPort(bad).ok()) << bad;
  }
}

TEST(ParseUnits, AreExactAndRefuseOverflow) {
  EXPECT_EQ(*ParseDurationNs("90s"), 90 * kNsPerSecond);
  EXPECT_EQ(*ParseDurationNs("7d"), 7 * kNsPerDay);
  EXPECT_EQ(*ParseBytes("64MiB"), 64 << 20);
  EXPECT_EQ(*ParseBytes("12"), 12);
  EXPECT_FALSE(ParseDurationNs("5").ok());
  EXPECT_FALSE(ParseDurationNs("-5s").ok());
  EXPECT_FALSE(ParseDurationNs("999999999999d").ok());
  EXPECT_FALSE(ParseBytes("1 MiB").ok());
}

}  // namespace
}  // namespace tributary
