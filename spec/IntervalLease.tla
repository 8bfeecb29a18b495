----------------------------- MODULE IntervalLease -----------------------------
(* Units of a meter (gcra, token bucket) lent to nodes.  One instant says how     *)
(* much there is: when the meter will be full.  Time is counted in parts: a unit  *)
(* takes Period of them to accrue, and in a tick Rate of them pass.               *)
(*                                                                                *)
(* over: of all intervals that end now, the worst: what was lent in it, and not   *)
(* given back or lost, less what accrued in it.                                   *)
EXTENDS Integers
CONSTANTS Nodes, Rate, Period, Burst, Batch, Cost,
          Once,      \* guard: the store takes units back once
          Keep       \* guard: a key is not forgotten before it is full
VARIABLES ahead, over, coming, cr, out, tag
vars == <<ahead, over, coming, cr, out, tag>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Zero == [n \in Nodes |-> 0]
Init == /\ ahead = 0 /\ over = 0
        /\ coming = Zero /\ cr = Zero /\ out = Zero /\ tag = Zero

Left == (Burst * Period - ahead) \div Period
Lent == LET k == Min(Max(Batch, Cost), Left) IN IF k >= Cost THEN k ELSE 0
Lend(n) == /\ coming[n] = 0 /\ cr[n] < Batch /\ Lent > 0
           /\ ahead' = ahead + Lent * Period /\ over' = over + Lent * Period
           /\ coming' = [coming EXCEPT ![n] = Lent]
           /\ out' = [out EXCEPT ![n] = Lent] /\ tag' = [tag EXCEPT ![n] = ahead']
           /\ UNCHANGED cr
Arrive(n) == /\ coming[n] > 0 /\ cr' = [cr EXCEPT ![n] = @ + coming[n]]
             /\ coming' = [coming EXCEPT ![n] = 0] /\ UNCHANGED <<ahead, over, out, tag>>
Spend(n) == /\ cr[n] > 0 /\ cr' = [cr EXCEPT ![n] = @ - 1]
            /\ UNCHANGED <<ahead, over, coming, out, tag>>
TakeOff(k) == over' = Max(0, over - k * Period)
Lose(n) == /\ cr[n] + coming[n] > 0 /\ TakeOff(cr[n] + coming[n])
           /\ cr' = [cr EXCEPT ![n] = 0] /\ coming' = [coming EXCEPT ![n] = 0]
           /\ UNCHANGED <<ahead, out, tag>>

\* Only the latest grant's, and only if nothing else has moved the instant since.
GiveBack(n) == /\ cr[n] > 0 /\ coming[n] = 0 /\ TakeOff(cr[n])
               /\ cr' = [cr EXCEPT ![n] = 0]
               /\ LET k == Min(cr[n], out[n])
                      taken == out[n] > 0 /\ tag[n] = ahead
                      back == k * Period
                      again == IF Once THEN 0 ELSE Min(back, Max(0, ahead - back)) IN
                  /\ ahead' = IF taken THEN Max(0, ahead - back - again) ELSE ahead
                  /\ out' = IF taken THEN [out EXCEPT ![n] = 0] ELSE out
                  /\ tag' = IF taken THEN [tag EXCEPT ![n] = 0] ELSE tag
               /\ UNCHANGED coming

Less(p) == Max(0, p - Rate)
Tick == /\ ahead' = Less(ahead) /\ over' = Less(over)
        /\ tag' = [n \in Nodes |-> Less(tag[n])]
        /\ out' = [n \in Nodes |-> IF tag'[n] = 0 THEN 0 ELSE out[n]]
        /\ UNCHANGED <<coming, cr>>
ForgetKey == /\ Keep => ahead = 0
             /\ ahead' = 0 /\ out' = Zero /\ tag' = Zero /\ UNCHANGED <<over, coming, cr>>

Next == Tick \/ ForgetKey \/ \E n \in Nodes :
            Lend(n) \/ Arrive(n) \/ Spend(n) \/ Lose(n) \/ GiveBack(n)
Spec == Init /\ [][Next]_vars

Intervals == over <= Burst * Period
Reached == over < Burst * Period       \* must be violated
================================================================================
