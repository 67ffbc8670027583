"""What goes around a judge: each wrapper is a judge that asks another one."""
