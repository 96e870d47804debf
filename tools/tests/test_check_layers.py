"""Proves that check_layers.py fails on each kind of wrong include, and on none that is right."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, *lines):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def findings(self):
        return check_layers.Check(self.root).run()

    def accepts(self, name, *lines):
        self.write(name, *lines)
        self.assertEqual(self.findings(), [])

    def refuses(self, message, name, *lines):
        """The last of the lines must be reported with this message, and nothing else."""
        self.write(name, *lines)
        findings = self.findings()
        self.assertEqual(len(findings), 1, findings)
        self.assertIn(f"{name}:{len(lines)}: ", findings[0])
        self.assertIn(message, findings[0])

    # Layers

    def test_the_table_has_no_cycle_and_names_only_layers(self):
        graph = {user: used - {user} for user, used in check_layers.ALLOWED.items()}
        self.assertEqual(check_layers.cycles(graph), [])
        for used in graph.values():
            self.assertLessEqual(used, set(graph))
        self.assertLessEqual(set(check_layers.PUBLIC_HEADERS.values()), set(graph))

    def test_every_pair_of_layers_is_judged_by_the_table(self):
        for user, allowed in check_layers.ALLOWED.items():
            for used in check_layers.ALLOWED:
                with self.subTest(user=user, used=used):
                    self.write(f"src/{user}/x.cc", f'#include "{used}/y.h"')
                    self.assertEqual(self.findings() == [], used in allowed)
                    (self.root / f"src/{user}/x.cc").unlink()

    def test_lower_layers_may_be_used(self):
        self.accepts("src/limit/x.cc", '#include "limit/x.h"', "", '#include "base/time.h"')

    def test_base_uses_nobody(self):
        self.refuses("'base' may not use 'limit'", "src/base/x.h", "", '#include "limit/x.h"')

    def test_redis_and_http_know_nothing_of_limits_or_each_other(self):
        for user, used in (("redis", "limit"), ("http", "store"), ("redis", "http")):
            with self.subTest(user=user, used=used):
                self.refuses(
                    f"'{user}' may not use '{used}'", f"src/{user}/x.cc", f'#include "{used}/x.h"'
                )
                (self.root / f"src/{user}/x.cc").unlink()

    def test_front_ends_do_not_use_each_other(self):
        self.refuses("'admin' may not use 'gateway'", "src/admin/x.cc", '#include "gateway/x.h"')

    def test_nobody_uses_apps(self):
        self.refuses("'apps'", "src/gateway/x.cc", '#include "apps/stint/main.h"')

    def test_nobody_uses_tests(self):
        self.refuses("'tests'", "src/store/x.cc", '#include "tests/model/reference_store.h"')

    def test_unknown_layer(self):
        self.refuses("not a layer", "src/misc/x.h", "")

    def test_file_outside_any_layer(self):
        self.refuses("not a layer", "src/x.h", "")

    def test_include_of_unknown_layer(self):
        (self.root / "src/misc").mkdir(parents=True)
        self.refuses("not a layer", "src/base/x.cc", '#include "misc/x.h"')

    def test_relative_include(self):
        self.refuses("relative", "src/limit/x.cc", '#include "../policy/x.h"')

    def test_angle_brackets_do_not_hide_an_include(self):
        self.write("src/limit/x.h", "")
        self.refuses("'base' may not use 'limit'", "src/base/x.cc", "#include <limit/x.h>")

    def test_system_header_named_like_a_layer(self):
        self.accepts("src/http/x.cc", "#include <net/if.h>")

    def test_spacing_does_not_hide_an_include(self):
        self.refuses("may not use", "src/base/x.cc", '  #  include  "limit/x.h"')

    def test_commented_includes_do_not_count(self):
        self.accepts(
            "src/base/x.cc",
            '// #include "limit/x.h"',
            "/*",
            '#include "limit/x.h"',
            "*/",
            'const char* url = "http://x";  // 1\'000',
        )

    def test_code_after_a_url_in_a_string_still_counts(self):
        self.refuses(
            "may not use", "src/base/x.cc", 'const char* url = "http:/*";', '#include "limit/x.h"'
        )

    def test_tests_and_benchmarks_may_use_everything(self):
        self.write("src/base/x_test.cc", '#include "admission/x.h"', "#include <thread>")
        self.write("src/limit/x_testing.h", "#include <ostream>")
        self.write("src/limit/x_bench.cc", '#include "store/memory/x.h"')
        self.write("tests/contract/x_test.cc", '#include "store/memory/x.h"')
        self.accepts("apps/stint/main.cc", '#include "gateway/x.h"', "getenv(")

    # Concrete stores

    def test_store_and_admission_may_use_a_concrete_store(self):
        self.write("src/store/factory.cc", '#include "store/memory/memory_store.h"')
        self.accepts("src/admission/limiter.cc", '#include "store/memory/memory_store.h"')

    def test_gateway_may_use_the_store_contract_only(self):
        self.write("src/gateway/x.cc", '#include "store/rate_store.h"')
        self.refuses("concrete store", "src/gateway/y.cc", '#include "store/memory/memory_store.h"')

    def test_decision_may_not_use_the_redis_store(self):
        self.refuses("concrete store", "src/decision/x.cc", '#include "store/redis/redis_store.h"')

    # Public headers

    def test_public_header_counts_as_its_layer(self):
        self.write("src/base/ok.cc", '#include "stint/error.h"')
        self.refuses("'base' may not use 'limit'", "src/base/x.cc", '#include "stint/limit.h"')

    def test_public_header_in_angle_brackets(self):
        self.refuses("'limit' may not use 'policy'", "src/limit/x.cc", "#include <stint/policy.h>")

    def test_public_headers_keep_to_their_layer(self):
        self.refuses("may not use", "include/stint/error.h", '#include "stint/limiter.h"')

    def test_public_header_includes_nothing_that_is_not_installed(self):
        for target in ('"limit/spec.h"', "<boost/version.hpp>", "<xxhash.h>"):
            with self.subTest(target=target):
                self.refuses("not have installed", "include/stint/limit.h", f"#include {target}")

    def test_unknown_public_header(self):
        self.refuses("unknown public header", "include/stint/extra.h", "")

    def test_include_of_unknown_public_header(self):
        self.refuses("unknown public header", "src/base/x.cc", '#include "stint/extra.h"')

    def test_examples_use_public_headers_only(self):
        self.write("examples/ok.cc", '#include "stint/limiter.h"', "#include <iostream>")
        self.refuses("public headers only", "examples/x.cc", '#include "limit/spec.h"')

    # Purity

    def test_pure_layers_do_no_input_or_output(self):
        for layer in ("limit", "policy", "ring"):
            for header in ("fstream", "iostream", "thread", "sys/socket.h", "boost/asio/ip/tcp.hpp"):
                with self.subTest(layer=layer, header=header):
                    self.refuses("does no I/O", f"src/{layer}/x.cc", f"#include <{header}>")
                    (self.root / f"src/{layer}/x.cc").unlink()

    def test_pure_layers_may_use_values_of_the_standard_library(self):
        self.accepts("src/limit/x.cc", "#include <chrono>", "#include <string>", "#include <charconv>")

    def test_other_layers_may_do_input_and_output(self):
        self.accepts("src/config/x.cc", "#include <fstream>")

    def test_clock_reads(self):
        for call in ("std::chrono::steady_clock::now()", "system_clock :: now()", "clock_gettime(0, p)"):
            with self.subTest(call=call):
                self.refuses("reads a clock", "src/store/x.cc", "", f"auto t = {call};")

    def test_clock_read_in_the_only_place(self):
        self.accepts("src/base/system_clock.cc", "auto t = std::chrono::steady_clock::now();")

    def test_clock_named_in_a_comment_or_text(self):
        self.accepts("src/limit/x.cc", '// steady_clock::now()', 'auto s = "system_clock::now()";')

    def test_environment_reads(self):
        self.refuses("environment", "src/base/x.cc", 'auto v = std::getenv("HOME");')

    def test_entropy(self):
        self.refuses("entropy", "src/store/x.cc", "std::random_device device;")

    # Cycles, table, command line

    def test_cycle_between_layers(self):
        self.write("src/limit/x.h", '#include "base/x.h"')
        self.write("src/base/x.h", '#include "limit/x.h"')
        self.assertIn("layers in a circle: base -> limit -> base", "\n".join(self.findings()))

    def test_cycles_finds_the_long_way_round(self):
        graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}
        self.assertEqual(check_layers.cycles(graph), [["a", "b", "c", "a"]])

    def run_tool(self, *options):
        command = [sys.executable, "-B", TOOLS / "check_layers.py", "--root", self.root, *options]
        return subprocess.run(command, capture_output=True, text=True)

    def test_exit_code_and_output(self):
        self.write("src/base/x.h", '#include "limit/x.h"')
        result = self.run_tool()
        self.assertEqual(result.returncode, 1)
        self.assertIn("src/base/x.h:1: 'base' may not use 'limit' (limit/x.h)", result.stderr)

    def test_table(self):
        self.write("src/limit/x.h", '#include "base/x.h"', '#include "stint/time.h"')
        result = self.run_tool("--table")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^limit +2 +\.$")


if __name__ == "__main__":
    unittest.main()
