"""Each form the await rule forbids is found; those it allows are not."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_awaits  # noqa: E402

ALLOWED = """
auto x = co_await f(a, 1, "text {");
const auto x = co_await f();
auto& [a, b] = co_await f();
auto* p = co_await f();
[[maybe_unused]] auto x = co_await f();
co_await f();
co_await timer.wait(deadline);
co_await self->inner->go(std::move(options), x + 1, a[i], b && c);
co_await std::move(task);
co_await f<int, std::vector<A<B>>, C>(x);
co_return co_await f(x);
if (x) co_await f();
if (T{}.ok()) co_return co_await f();
else co_await f();
for (int i = 0; i < n; ++i) co_await f(i);
while (i < n) { co_await f(i); }
switch (kind) { case Kind::kA: co_await f(); break; default: co_await g(); }
do co_await f(); while (more);
auto task = [this]() -> Task { co_await f(); };
run([x] { return x; }, [&]() -> Task { auto y = co_await f(); use(y); });
co_await co_spawn(executor, []() -> Task { co_await f(); }, token);
Options o{.a = 1}; co_await f(std::move(o));
// if (co_await f())
auto text = "if (co_await f())";
auto operator co_await() noexcept { return Awaiter(this); }
"""

FORBIDDEN = """
if (co_await f()) g();
if (auto r = co_await f(); r) g();
while (co_await f()) {}
do { } while (co_await f());
for (; co_await f();) {}
for (auto& x : co_await f()) {}
switch (co_await f()) {}
auto x = b ? co_await f() : 1;
auto x = co_await f(b ? s : t);
g(co_await f());
auto y = (co_await f()).value();
auto x = co_await f(co_await g());
co_await f(Options{.a = 1});
co_await f({.a = 1});
co_await f({});
co_await Options{1}.go();
Options o{.a = co_await f()};
v.push_back(Options{co_await f(), 1});
std::vector<std::string> v{co_await f()};
co_await f([s] { return s; });
co_await f([&s](int x) { return s; });
co_await [s]() -> Task { return g(); }();
co_await (f() || g());
auto x = co_await f() + 1;
auto ok = co_await f() == 1;
throw Error(co_await f());
throw co_await f();
x = co_await f();
int x = co_await f();
auto x = co_await f(), y = 2;
(void)co_await f();
a[co_await f()] = 1;
auto x = !co_await f();
"""


class CheckAwaits(unittest.TestCase):
    def body(self, statement):
        return f"Task<int> run() {{\n{statement}\n}}\n"

    def test_allowed_forms(self):
        for statement in ALLOWED.strip().splitlines():
            with self.subTest(statement=statement):
                self.assertEqual(check_awaits.check(self.body(statement)), [])

    def test_forbidden_forms(self):
        for statement in FORBIDDEN.strip().splitlines():
            with self.subTest(statement=statement):
                findings = check_awaits.check(self.body(statement))
                self.assertEqual({line for line, _ in findings}, {2}, findings)

    def test_statements_over_several_lines(self):
        good = "auto x =\n    co_await f(a,\n               b);"
        bad = "co_await f(\n    a,\n    Options{.a = 1});"
        self.assertEqual(check_awaits.check(self.body(good)), [])
        self.assertEqual(len(check_awaits.check(self.body(bad))), 1)

    def test_every_await_of_a_file_is_judged(self):
        text = self.body("co_await f();\nif (co_await f()) {}\nco_await g();\ng(co_await f());")
        self.assertEqual([line for line, _ in check_awaits.check(text)], [3, 5])

    def test_macro(self):
        text = "#define TRY(x) \\\n  if (!co_await x) return\n"
        self.assertEqual([line for line, _ in check_awaits.check(text)], [1])

    def test_numbers_and_raw_strings_do_not_confuse_it(self):
        text = self.body("auto n = 1'000; auto s = R\"(if (co_await \" { )\"; co_await f(n);")
        self.assertEqual(check_awaits.check(text), [])


if __name__ == "__main__":
    unittest.main()
